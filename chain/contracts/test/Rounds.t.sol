// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../src/interfaces/IStaking.sol";
import {ITaskRounds} from "../src/interfaces/ITaskRounds.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {TaskRules} from "../src/libraries/TaskRules.sol";
import {Fixture} from "./utils/Fixture.sol";

/// @notice Whole tasks: the path on which all goes well, and every way in which a round comes to nothing.
contract RoundsTest is Fixture {
    function test_task_endsWithEverybodyPaid() public {
        _toForming();
        ITaskTypes.RoundState memory statistics = tasks.roundState(id, 0);
        vm.assertEq(uint256(statistics.outcome), uint256(ITaskTypes.Outcome.Settled));
        vm.assertEq(statistics.medians.length, 0);
        _assertConserved();

        _runRound(2_000);
        ITaskTypes.RoundState memory first = tasks.roundState(id, 1);
        vm.assertEq(uint256(first.outcome), uint256(ITaskTypes.Outcome.Settled));
        vm.assertEq(first.cohorts, 2);
        vm.assertEq(first.acceptedCohorts, 3);
        vm.assertEq(first.medians[0], 2_000);
        // Half the pool is the round's: 350 for hospitals by weight, 100 for voters, 50 for the aggregator.
        vm.assertEq(_earned(_hospital(0)), 35e18);
        vm.assertEq(_earned(_hospital(3)), 140e18);
        vm.assertEq(_earned(_voter(0)), uint256(100e18) / 3);
        vm.assertEq(_earned(AGGREGATOR), 50e18);
        _assertPhase(ITaskTypes.Phase.Forming);
        _assertConserved();

        _runRound(2_000);
        _assertPhase(ITaskTypes.Phase.Ended);
        vm.assertEq(tasks.state(id).poolLeft, 0);
        vm.assertEq(tasks.claimable(OPERATOR), 0);
        vm.assertEq(token.totalSupply(), SUPPLY - 2); // what rounding down left
        _assertConserved();
        _leaveAll();
    }

    function _leaveAll() private {
        vm.warp(block.timestamp + VESTING);
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            _leave(_hospital(i), IStaking.Role.Hospital);
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            _leave(_voter(i), IStaking.Role.Voter);
        }
        _leave(AGGREGATOR, IStaking.Role.Aggregator);
        vm.assertEq(token.balanceOf(address(tasks)), 0);
        vm.assertEq(tasks.totalClaimable(), 0);
        _assertConserved();
    }

    function _leave(address node, IStaking.Role role) private {
        tasks.releaseBond(id, node);
        vm.assertEq(_locked(node, role), 0);
        uint256 earned = _earned(node);
        vm.prank(node);
        uint256 claimed = staking.claim(node, role);
        vm.assertLe(claimed, earned);
        vm.assertLe(earned, claimed + (STAKE >> 48) + 1); // what does not divide among the shares is paid later
    }

    function test_tick_endsTaskThatNobodyJoined() public {
        _propose(_params());
        _pass();
        tasks.tick(id);
        _assertPhase(ITaskTypes.Phase.Ended);
        vm.assertEq(tasks.claimable(OPERATOR), 1_000e18);
        _assertConserved();
    }

    function test_tick_endsTaskWithoutAggregator() public {
        _propose(_params());
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            _joinHospital(i);
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            _joinVoter(i);
        }
        _pass();
        tasks.tick(id);
        _assertPhase(ITaskTypes.Phase.Ended);
        tasks.releaseBond(id, _hospital(1));
        vm.assertEq(_locked(_hospital(1), IStaking.Role.Hospital), 0);
        _assertConserved();
    }

    function test_tick_startsWithEnoughOfEverybody() public {
        _propose(_params());
        _joinAggregator();
        _joinHospital(0);
        _joinHospital(1);
        _joinVoter(0);
        _joinVoter(1);
        _pass();
        vm.expectEmit(address(tasks));
        emit ITaskTypes.PhaseStarted(id, 0, ITaskTypes.Phase.Committing, uint64(block.timestamp + WINDOW));
        tasks.tick(id);
        vm.assertEq(_roundState().members, 3);
    }

    function test_tick_endsTaskOfVoidStatistics() public {
        _toStatistics();
        _commit(0);
        _pass();
        tasks.tick(id);
        _assertVoid(0, ITaskTypes.VoidReason.TooFewHospitals);
        _assertPhase(ITaskTypes.Phase.Ended);
        _assertConserved();
    }

    function test_tick_marksAbsentWhoDidNotCommit() public {
        _toCommitting();
        _commit(0);
        _commit(1);
        _commit(2);
        _pass();
        vm.expectEmit(address(tasks));
        emit ITaskTypes.HospitalAbsent(id, 1, _hospital(3));
        tasks.tick(id);
        vm.assertEq(tasks.state(id).activeHospitals, 7);
        _assertPhase(ITaskTypes.Phase.Uploading);
    }

    function test_tick_endsTaskWithFewerHospitalsThanACohort() public {
        _toCommitting();
        _commit(0);
        _pass();
        tasks.tick(id);
        _assertVoid(1, ITaskTypes.VoidReason.TooFewHospitals);
        _assertPhase(ITaskTypes.Phase.Ended);
        _assertConserved();
    }

    function test_tick_voidsRoundWithoutSurvivorsAndSlashesAggregator() public {
        _toUploading();
        _pass();
        vm.expectEmit(address(tasks));
        emit ITaskTypes.Slashed(id, 1, AGGREGATOR, 100e18, ITaskTypes.SlashReason.NotPublished);
        tasks.tick(id);
        _assertVoid(1, ITaskTypes.VoidReason.SurvivorsNotFixed);
        _assertPhase(ITaskTypes.Phase.Forming);
        vm.assertEq(_locked(AGGREGATOR, IStaking.Role.Aggregator), 100e18);
        vm.assertEq(token.totalSupply(), SUPPLY - 100e18);
        _assertConserved();
    }

    function test_tick_voidsUnpublishedRoundAndSlashesAggregator() public {
        _toPublishing();
        bytes32 hash = _sumCohort(0, 0);
        _publish(0, 0, hash);
        _pass();
        tasks.tick(id);
        _assertVoid(1, ITaskTypes.VoidReason.NotPublished);
        vm.assertEq(_locked(AGGREGATOR, IStaking.Role.Aggregator), 100e18);
        _assertConserved();
    }

    function test_tick_slashesAggregatorNoFurtherThanItsBond() public {
        ITaskTypes.TaskParams memory params = _params();
        (params.rounds, params.notPublishedSlashBps) = (3, 4_000);
        _propose(params);
        _joinAll();
        _runTraining();
        for (uint256 i = 0; i < 3; ++i) {
            _form();
            _commitAll();
            _pass();
            tasks.tick(id);
        }
        _assertPhase(ITaskTypes.Phase.Ended);
        vm.assertEq(_locked(AGGREGATOR, IStaking.Role.Aggregator), 0);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NothingToRelease.selector, id, AGGREGATOR));
        tasks.releaseBond(id, AGGREGATOR);
        _assertConserved();
    }

    function test_tick_voidsRoundWithTooFewSeated() public {
        _toScoring();
        _score(0, _scores(1));
        _pass();
        tasks.tick(id);
        _assertVoid(1, ITaskTypes.VoidReason.TooFewScores);
        _assertConserved();
    }

    function test_tick_goesOnWithEnoughSeated() public {
        _toScoring();
        _score(0, _scores(1));
        _score(2, _scores(1));
        _pass();
        tasks.tick(id);
        _assertPhase(ITaskTypes.Phase.Revealing);
    }

    function test_tick_voidsRoundWithTooFewReveals() public {
        _toRevealing(1);
        _reveal(1, _scores(1));
        _pass();
        tasks.tick(id);
        _assertVoid(1, ITaskTypes.VoidReason.TooFewScores);
        vm.assertEq(_locked(_voter(0), IStaking.Role.Voter), 25e18);
        vm.assertEq(_locked(_voter(1), IStaking.Role.Voter), 50e18);
        vm.assertEq(_earned(_voter(1)), 0);
        _assertConserved();
    }

    function test_tick_settlesAfterRevealing() public {
        _toRevealing(1);
        _reveal(1, _scores(1));
        _reveal(2, _scores(1));
        _pass();
        tasks.tick(id);
        vm.assertEq(uint256(tasks.roundState(id, 1).outcome), uint256(ITaskTypes.Outcome.Settled));
        vm.assertEq(_locked(_voter(0), IStaking.Role.Voter), 25e18);
        _assertConserved();
    }

    function test_tick_refusedBeforeDeadline() public {
        _toCommitting();
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PhaseNotOver.selector, id, tasks.state(id).deadline));
        tasks.tick(id);
    }

    function test_tick_refusedForUnknownAndEndedTasks() public {
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.TaskUnknown.selector, 9));
        tasks.tick(9);
        _propose(_params());
        _pass();
        tasks.tick(id);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PhaseNotOver.selector, id, 0));
        tasks.tick(id);
    }

    function test_tick_asksBeaconAnewOnlyOnceExpired() public {
        _toForming();
        uint256 request = _roundState().beaconRequest;
        uint64 deadline = tasks.state(id).deadline;
        vm.assertEq(deadline, block.timestamp + TaskRules.BEACON_WINDOW);
        _reachBeacon();
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PhaseNotOver.selector, id, deadline));
        tasks.tick(id);
        vm.roll(request + 10_000);
        tasks.tick(id);
        vm.assertEq(_roundState().beaconRequest, request + 10_000 + LOOKAHEAD);
        _form();
        _assertPhase(ITaskTypes.Phase.Committing);
    }

    function test_roundState_neverChangesOnceSettled() public {
        _toForming();
        _runRound(2_000);
        bytes32 before = keccak256(abi.encode(tasks.roundState(id, 1)));
        _runRound(-5_000);
        vm.assertEq(keccak256(abi.encode(tasks.roundState(id, 1))), before);
    }
}
