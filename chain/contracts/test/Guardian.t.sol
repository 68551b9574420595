// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../src/interfaces/IStaking.sol";
import {ITaskRegistry} from "../src/interfaces/ITaskRegistry.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Fixture} from "./utils/Fixture.sol";

/// @notice A guardian keeps new tasks from starting, and has no other power.
contract GuardianTest is Fixture {
    function _stop() private {
        vm.prank(GUARDIAN);
        tasks.stopProposals();
    }

    function test_stopProposals_keepsNewTasksOut() public {
        vm.expectEmit(address(tasks));
        emit ITaskTypes.ProposalsEnded(GUARDIAN);
        _stop();
        vm.assertTrue(tasks.proposalsStopped());
        ITaskTypes.TaskParams memory params = _params();
        vm.expectRevert(ITaskTypes.ProposalsStopped.selector);
        vm.prank(OPERATOR);
        tasks.propose(params);
        vm.assertEq(tasks.taskCount(), 0);
        vm.expectRevert(ITaskTypes.ProposalsStopped.selector);
        _stop();
    }

    function test_stopProposals_refusesEverybodyElse(address other) public {
        vm.assume(other != GUARDIAN);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NotGuardian.selector, other));
        vm.prank(other);
        tasks.stopProposals();
        vm.assertFalse(tasks.proposalsStopped());
    }

    /// @dev A registry deployed with no guardian has nobody who could send as the zero address.
    function test_guardian_isFixedAtDeployment() public {
        vm.assertEq(tasks.guardian(), GUARDIAN);
        bytes memory arguments = abi.encode(token, staking, beacon, address(0));
        ITaskRegistry unguarded = ITaskRegistry(vm.deployCode(_artifact("TaskRegistry"), arguments));
        vm.assertEq(unguarded.guardian(), address(0));
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NotGuardian.selector, GUARDIAN));
        vm.prank(GUARDIAN);
        unguarded.stopProposals();
    }

    /// @dev The task goes on to its end, whatever its phase, and everybody withdraws what is theirs.
    /// forge-config: default.fuzz.runs = 24
    function test_stopProposals_touchesNoRunningTask(uint256 when) public {
        when = _bound(when, 0, 5);
        _propose(_params());
        if (when == 0) _stop();
        _joinAll();
        if (when == 1) _stop();
        _runTraining();
        if (when == 2) _stop();
        _runRound(2_000);
        if (when == 3) _stop();
        _runRound(2_000);
        if (when == 4) _stop();
        _assertPhase(ITaskTypes.Phase.Ended);
        vm.assertEq(_earned(AGGREGATOR), 100e18);
        tasks.releaseBond(id, AGGREGATOR);
        if (when == 5) _stop();
        vm.assertEq(_locked(AGGREGATOR, IStaking.Role.Aggregator), 0);
        vm.warp(block.timestamp + VESTING);
        vm.prank(AGGREGATOR);
        vm.assertGt(staking.claim(AGGREGATOR, IStaking.Role.Aggregator), 99e18);
        _assertConserved();
    }

    /// @dev Stopping writes one flag: no task, no bond, no claim and no token differs afterwards.
    function test_stopProposals_changesNothingElse() public {
        _toRevealing(1_000);
        bytes memory before = _everything();
        _stop();
        vm.assertEq(_everything(), before);
        vm.assertEq(token.balanceOf(GUARDIAN), 0);
        vm.assertEq(tasks.claimable(GUARDIAN), 0);
    }

    function _everything() private view returns (bytes memory) {
        return abi.encode(
            tasks.state(id),
            tasks.params(id),
            tasks.roundState(id, 1),
            tasks.hospitals(id),
            tasks.voters(id),
            tasks.totalClaimable(),
            token.balanceOf(address(tasks)),
            token.balanceOf(address(staking)),
            staking.stakeOf(_voter(0), IStaking.Role.Voter)
        );
    }
}
