// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Fixture} from "./utils/Fixture.sol";

/// @notice The unpaid part of a played round is burnt in the end.
contract ForfeitTest is Fixture {
    uint256 private constant PART = 500e18; // of 1,000 in two rounds

    function _forfeited() private view returns (uint256) {
        return tasks.state(id).forfeited;
    }

    function _assertEnded(uint256 refund, uint256 burnt) private view {
        _assertPhase(ITaskTypes.Phase.Ended);
        vm.assertEq(tasks.claimable(OPERATOR), refund);
        vm.assertEq(token.totalSupply(), SUPPLY - burnt);
        _assertConserved();
    }

    /// @dev A node that keeps others from their pay gets no part of it later.
    function test_settle_paysALaterRoundNothingOfARejectedOne() public {
        _toScoring();
        _scoreAll(-1); // rejected, and not harmful
        tasks.settle(id, 1);
        // The voters, who agree, and the aggregator are paid from the round's part.
        uint256 left = PART * 7_000 / 10_000;
        vm.assertLe(left, _forfeited());
        vm.assertLe(_forfeited(), left + VOTERS);
        _runRound(1_000);
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            vm.assertEq(tasks.explain(id, 2, _hospital(i)).base, left);
        }
        vm.assertEq(tasks.claimable(OPERATOR), 0);
        _assertConserved();
    }

    /// @dev A node that holds the median gets nothing back by it.
    function test_end_burnsWhatPlayedRoundsDidNotPay() public {
        _toScoring();
        _scoreAll(-1);
        tasks.settle(id, 1);
        _runRound(-1);
        uint256 paid = tasks.explain(id, 1, AGGREGATOR).reward + tasks.explain(id, 2, AGGREGATOR).reward + 3
            * (tasks.explain(id, 1, _voter(0)).reward + tasks.explain(id, 2, _voter(0)).reward);
        _assertEnded(0, 1_000e18 - paid);
    }

    /// @dev The operator's own aggregator knows the sums once uploads are in.
    function test_end_burnsTheirPartWhereTheAggregatorVoidsRounds() public {
        _toUploading();
        _pass();
        tasks.tick(id);
        _assertVoid(1, ITaskTypes.VoidReason.SurvivorsNotFixed);
        vm.assertEq(_forfeited(), PART);
        vm.prank(OPERATOR);
        tasks.stop(id);
        _form();
        _commitAll();
        _pass();
        tasks.tick(id);
        _assertEnded(0, 1_000e18 + 200e18); // and both slashes
    }

    function test_end_refundsRoundsThatWereNotPlayed() public {
        _toScoring();
        vm.prank(OPERATOR);
        tasks.stop(id);
        _scoreAll(-1);
        tasks.settle(id, 1);
        uint256 paid = tasks.explain(id, 1, AGGREGATOR).reward + 3 * tasks.explain(id, 1, _voter(0)).reward;
        _assertEnded(PART, PART - paid);
    }

    /// @dev Hospitals that join and commit nothing cost an operator nothing but time.
    function test_end_refundsRoundsInWhichTooFewCommitted() public {
        _toCommitting();
        _pass();
        tasks.tick(id);
        _assertVoid(1, ITaskTypes.VoidReason.TooFewHospitals);
        _assertEnded(1_000e18, 0);
    }

    /// @dev After uploads the aggregator is at fault if there are too few.
    function test_fixSurvivors_ofTooFewPaysNothingBack() public {
        _toUploading();
        _fix(0);
        _assertVoid(1, ITaskTypes.VoidReason.TooFewHospitals);
        vm.assertEq(_forfeited(), PART);
    }
}

/// @notice An aggregator that comes late, but comes, goes without its fee, and keeps its bond.
contract GraceTest is Fixture {
    uint256 private constant FEE = 50e18;
    uint256 private constant GRACE = WINDOW / 2;

    function _late() private {
        vm.warp(tasks.state(id).deadline);
    }

    function _onTime() private {
        vm.warp(tasks.state(id).deadline - GRACE);
    }

    function _judgedReward() private returns (uint256) {
        _draw();
        _scoreAll(1_000);
        tasks.settle(id, 1);
        _assertConserved();
        ITaskTypes.Payout memory payout = tasks.explain(id, 1, AGGREGATOR);
        bool isLate = payout.reason == ITaskTypes.PayoutReason.Late;
        vm.assertTrue(isLate == (payout.reward == 0));
        vm.assertEq(payout.slash, 0);
        return payout.reward;
    }

    function test_fixSurvivors_lateCostsTheFeeAlone() public {
        _toUploading();
        _late();
        _fix(_roundState().members);
        _publishAll();
        vm.assertEq(_judgedReward(), 0);
    }

    function test_publish_lateCostsTheFeeAlone() public {
        _toPublishing();
        _late();
        _publishAll();
        vm.assertEq(_judgedReward(), 0);
    }

    function test_publish_atTheEndOfItsWindowIsPaid() public {
        _toUploading();
        _onTime();
        _fix(_roundState().members);
        _onTime();
        _publishAll();
        vm.assertEq(_judgedReward(), FEE);
    }

    function test_publish_laterThanLateIsRefusedAndSlashed() public {
        _toPublishing();
        bytes32 hash = _sumCohort(0, 0);
        _pass();
        _setBlob(hash);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PhaseOver.selector, id, tasks.state(id).deadline));
        vm.prank(AGGREGATOR);
        tasks.publish(id, 1, 0, 0, 0, 1);
        tasks.tick(id);
        vm.assertEq(tasks.explain(id, 1, AGGREGATOR).slash, 100e18);
    }

    /// @dev A round's lateness is no other's.
    function test_settle_paysTheNextRoundInFull() public {
        _toPublishing();
        _late();
        _publishAll();
        vm.assertEq(_judgedReward(), 0);
        _runRound(1_000);
        vm.assertEq(tasks.explain(id, 2, AGGREGATOR).reward, FEE);
    }
}
