// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Fixture} from "./utils/Fixture.sol";

/// @notice A tick that moves a task on earns its caller a little of the pool; nothing else does.
contract BountiesTest is Fixture {
    uint128 private constant BOUNTY = 0.8e18;

    function _start() private {
        ITaskTypes.TaskParams memory params = _params();
        params.tickBounty = BOUNTY;
        _propose(params);
    }

    function _tick() private {
        _pass();
        vm.prank(STRANGER);
        tasks.tick(id);
        _assertConserved();
    }

    function _toLateRevealing() private {
        _start();
        _joinAll();
        _runTraining();
        _form();
        _runTraining();
        _draw();
        _score(0, _scores(1_000));
        _score(1, _scores(1_000));
        _tick();
    }

    function test_tick_paysWhoMovesTheTaskOn() public {
        _start();
        _joinAggregator();
        _joinHospital(0);
        _joinHospital(1);
        _joinVoter(0);
        _joinVoter(1);
        _pass();
        vm.expectEmit(address(tasks));
        emit ITaskTypes.BountyPaid(id, 0, STRANGER, BOUNTY);
        vm.prank(STRANGER);
        tasks.tick(id);
        vm.assertEq(tasks.claimable(STRANGER), BOUNTY);
        vm.assertEq(tasks.state(id).poolLeft, 1_000e18 - BOUNTY);
        vm.prank(STRANGER);
        tasks.claim();
        vm.assertEq(token.balanceOf(STRANGER), BOUNTY);
        _assertConserved();
    }

    function test_tick_paysBeforeTheRestGoesBack() public {
        _start();
        _tick();
        _assertPhase(ITaskTypes.Phase.Ended);
        vm.assertEq(tasks.claimable(STRANGER), BOUNTY);
        vm.assertEq(tasks.claimable(OPERATOR), 1_000e18 - BOUNTY);
    }

    /// @dev A round's rewards stay what they would have been as long as the pool reaches.
    function test_tick_leavesTheRoundItsBudget() public {
        _toLateRevealing();
        _reveal(0, _scores(1_000));
        _reveal(1, _scores(1_000));
        _tick();
        vm.assertEq(tasks.claimable(STRANGER), 2 * BOUNTY);
        vm.assertEq(_earned(AGGREGATOR), 50e18);
    }

    function test_tick_paysNothingTooEarlyOrTwice() public {
        _toLateRevealing();
        bytes memory refusal = abi.encodeWithSelector(ITaskTypes.PhaseNotOver.selector, id, tasks.state(id).deadline);
        vm.expectRevert(refusal);
        vm.prank(STRANGER);
        tasks.tick(id);
        vm.assertEq(tasks.claimable(STRANGER), BOUNTY);
    }

    /// @dev It does not move the task on, and could be done again and again.
    function test_tick_paysNothingForAskingTheBeaconAnew() public {
        _start();
        _joinAll();
        _runTraining();
        for (uint256 i = 0; i < 3; ++i) {
            vm.roll(block.number + 10_000);
            vm.prank(STRANGER);
            tasks.tick(id);
        }
        vm.assertEq(tasks.claimable(STRANGER), 0);
        _assertConserved();
    }

    function test_settle_paysNoBounty() public {
        _toLateRevealing();
        _reveal(0, _scores(1_000));
        _reveal(1, _scores(1_000));
        vm.prank(STRANGER);
        tasks.settle(id, 1);
        vm.assertEq(tasks.claimable(STRANGER), BOUNTY);
    }

    /// @dev The longest way through a task with everybody late: bounties take less than the hundredth they may.
    function test_tick_cannotDrainThePool() public {
        _start();
        _joinAggregator();
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            _joinHospital(i);
        }
        _joinVoter(0);
        _joinVoter(1);
        _tick();
        for (uint256 round = 0; round < 3; ++round) {
            if (round > 0) _form();
            uint256 members = _roundState().members;
            for (uint256 i = 0; i < HOSPITALS; ++i) {
                if (members >> i & 1 == 1 && i != HOSPITALS - 1) _commit(i);
            }
            if (tasks.state(id).phase == ITaskTypes.Phase.Committing) _tick();
            if (tasks.state(id).phase != ITaskTypes.Phase.Uploading) continue;
            uint256 survivors;
            for (uint256 k = 0; k < _roundState().cohorts; ++k) {
                if (_roundState().viableCohorts >> k & 1 == 1) survivors |= tasks.cohortMembers(id, round, k);
            }
            _fix(survivors & _roundState().committed);
            _publishAll();
            if (round == 0) continue;
            _draw();
            _score(0, _scores(1_000));
            _score(1, _scores(1_000));
            if (tasks.state(id).phase == ITaskTypes.Phase.Scoring) _tick();
            _reveal(0, _scores(1_000));
            _reveal(1, _scores(1_000));
            _tick();
        }
        _assertPhase(ITaskTypes.Phase.Ended);
        vm.assertLe(tasks.claimable(STRANGER), 1_000e18 / 100);
        vm.assertGt(tasks.claimable(STRANGER), 3 * BOUNTY);
    }
}
