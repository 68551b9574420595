// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {TaskRules} from "../src/libraries/TaskRules.sol";
import {Fixture} from "./utils/Fixture.sol";

/// @notice A beacon that never gives its value again: the task ends, everybody has its bond, and the operator gains
///         nothing.
contract BeaconDiesTest is Fixture {
    function _refuseTick() private {
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PhaseNotOver.selector, id, tasks.state(id).deadline));
        tasks.tick(id);
    }

    function _assertBondsFree() private {
        _assertPhase(ITaskTypes.Phase.Ended);
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            tasks.releaseBond(id, _hospital(i));
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            tasks.releaseBond(id, _voter(i));
        }
        tasks.releaseBond(id, AGGREGATOR);
        _assertConserved();
    }

    function test_tick_endsATaskWhoseCohortsCannotBeAssigned() public {
        _toForming();
        vm.warp(tasks.state(id).deadline);
        _refuseTick();
        _pass();
        tasks.tick(id);
        _assertVoid(1, ITaskTypes.VoidReason.NoRandomness);
        // Nobody has trained: all is the operator's again, but for the bounty.
        vm.assertEq(tasks.claimable(OPERATOR), _params().pool - _params().tickBounty);
        _assertBondsFree();
    }

    function test_tick_endsATaskWhoseSeatsCannotBeDrawn() public {
        _toDrawing();
        vm.warp(tasks.state(id).deadline);
        _refuseTick();
        _pass();
        tasks.tick(id);
        _assertVoid(1, ITaskTypes.VoidReason.NoRandomness);
        // The sums of this round are public: its part of the pool is burnt, as of any round that is not paid.
        uint256 played = _params().pool / _params().rounds;
        vm.assertEq(tasks.claimable(OPERATOR), _params().pool - played - _params().tickBounty);
        _assertBondsFree();
    }

    function test_drawSeats_isTakenUntilSomebodyEndsTheTask() public {
        _toDrawing();
        _pass();
        _draw();
        _assertPhase(ITaskTypes.Phase.Scoring);
    }

    /// @dev A new request has another week: the beacon lives.
    function test_tick_startsTheWeekAnewWithAnotherRequest() public {
        _toForming();
        vm.warp(block.timestamp + TaskRules.BEACON_WINDOW - 1);
        vm.roll(_roundState().beaconRequest + 10_000);
        tasks.tick(id);
        vm.assertEq(tasks.state(id).deadline, block.timestamp + TaskRules.BEACON_WINDOW);
        _form();
        _assertPhase(ITaskTypes.Phase.Committing);
    }
}
