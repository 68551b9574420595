// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../src/interfaces/IStaking.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Fixture} from "./utils/Fixture.sol";

/// @notice An operator may stop its task: what is under way is played and paid, nothing after it is.
contract StoppingTest is Fixture {
    function _stop() private {
        vm.prank(OPERATOR);
        tasks.stop(id);
    }

    function test_stop_whileOthersJoinEndsTheTask() public {
        _propose(_params());
        _joinAggregator();
        _joinHospital(0);
        uint256 before = tasks.claimable(OPERATOR);
        vm.expectEmit(address(tasks));
        emit ITaskTypes.TaskStopped(id, 0);
        _stop();
        _assertPhase(ITaskTypes.Phase.Ended);
        vm.assertEq(tasks.claimable(OPERATOR) - before, _params().pool);
        tasks.releaseBond(id, _hospital(0));
        vm.assertEq(_locked(_hospital(0), IStaking.Role.Hospital), 0);
        _assertConserved();
    }

    /// @dev An operator that stops in the statistics round pays for one round after it.
    function test_stop_inTheStatisticsRoundStillPlaysOneMore() public {
        _propose(_params());
        _joinAll();
        _stop();
        _runTraining();
        _assertPhase(ITaskTypes.Phase.Forming);
        vm.assertEq(_round(), 1);
        _runRound(2_000);
        _assertPhase(ITaskTypes.Phase.Ended);
        vm.assertGt(_rewards(_hospital(0), IStaking.Role.Hospital), 0);
        _assertConserved();
    }

    function test_stop_letsTheRoundUnderWayBePlayedAndPaid() public {
        _toScoring();
        vm.assertTrue(tasks.params(id).rounds > 1);
        uint256 left = tasks.state(id).poolLeft;
        _stop();
        vm.assertTrue(tasks.state(id).stopping);
        _scoreAll(2_000);
        tasks.settle(id, 1);
        _assertPhase(ITaskTypes.Phase.Ended);
        vm.assertGt(_rewards(_hospital(0), IStaking.Role.Hospital), 0);
        vm.assertGt(left, tasks.claimable(OPERATOR));
        vm.assertGt(tasks.claimable(OPERATOR), 0);
        _assertConserved();
    }

    function test_stop_isTheOperatorsAlone(address other) public {
        vm.assume(other != OPERATOR);
        _propose(_params());
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NotOperator.selector, other));
        vm.prank(other);
        tasks.stop(id);
    }

    function test_stop_happensOnceAndToWhatRuns() public {
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.TaskUnknown.selector, 1));
        tasks.stop(1);
        _toForming();
        _stop();
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.AlreadyStopped.selector, id));
        _stop();
        _runRound(2_000);
        _assertPhase(ITaskTypes.Phase.Ended);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.AlreadyStopped.selector, id));
        _stop();
    }
}
