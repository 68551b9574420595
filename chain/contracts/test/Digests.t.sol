// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../src/interfaces/IStaking.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Bits} from "../src/libraries/Bits.sol";
import {Scores} from "../src/libraries/Scores.sol";
import {DecoyFixture} from "./utils/DecoyFixture.sol";

/// @notice Publication by digest, on chains without blobs: nothing here sets a blob hash.
contract DigestsTest is DecoyFixture {
    using Bits for uint256;

    function _digestParams(bool decoys) private pure returns (ITaskTypes.TaskParams memory params) {
        params = decoys ? _decoyParams() : _params();
        params.digests = true;
    }

    function _toStatisticsScoring(bool decoys) private {
        _propose(_digestParams(decoys));
        _joinAll();
        _commitAll();
        _fix(15);
        _publishDigest(0, _sumCohort(0, 0));
        _assertPhase(ITaskTypes.Phase.Drawing);
        _draw();
    }

    function _judgeStatistics() private {
        _toStatisticsScoring(false);
        _scoreAll(0);
        tasks.settle(id, 0);
        vm.assertEq(uint256(tasks.roundState(id, 0).outcome), uint256(ITaskTypes.Outcome.Settled));
    }

    function test_publishDigests_takesTheSumAndNothingElse() public {
        _judgeStatistics();
        _form();
        _commitAll();
        _fix(15);
        bytes32 hash = _sumCohort(0, 0);
        bytes32[] memory hashes = new bytes32[](1);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NotAggregator.selector, address(this)));
        tasks.publishDigests(id, 1, 0, 0, hashes);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.BlobMismatch.selector, 0, 0, hash, bytes32(0)));
        vm.prank(AGGREGATOR);
        tasks.publishDigests(id, 1, 0, 0, hashes);
        _publishDigest(0, hash);
        _publishDigest(1, _sumCohort(1, 0));
        _draw();
        _scoreAll(1_000);
        tasks.settle(id, 1);
        vm.assertEq(_earned(_voter(0)), uint256(100e18) / 3);
        _assertConserved();
    }

    function test_task_runsWithDecoysAndWithoutBlobs() public {
        _toStatisticsScoring(true);
        _scoreAll(0);
        tasks.settle(id, 0);
        _form();
        _commitAll();
        _fix(15);
        _flip(2);
        _setDecoys();
        for (uint256 cohort = 0; cohort < 2; ++cohort) {
            _publishDigest(cohort, _publishedHash(cohort, 0, _isFlipped(cohort)));
        }
        _draw();
        _judge(_honest());
        _openAll();
        tasks.settle(id, 1);
        vm.assertEq(tasks.roundState(id, 1).acceptedCohorts, 3);
        _assertConserved();
    }

    /// @dev Voters only say if the statistics are available. Nobody is paid for it.
    function test_settle_statisticsPayNobodyAndSlashTheSilent() public {
        _toStatisticsScoring(false);
        for (uint256 i = 0; i < VOTERS; ++i) {
            _score(i, _scores(0));
        }
        _reveal(0, _scores(0));
        _reveal(1, _scores(0));
        _pass();
        tasks.settle(id, 0);
        vm.assertEq(_earned(_voter(0)), 0);
        ITaskTypes.Payout memory payout = tasks.explain(id, 0, _voter(2));
        vm.assertEq(uint256(payout.reason), uint256(ITaskTypes.PayoutReason.NotRevealed));
        vm.assertEq(payout.slash, 25e18);
        payout = tasks.explain(id, 0, _voter(1));
        vm.assertEq(uint256(payout.reason), uint256(ITaskTypes.PayoutReason.Statistics));
        _assertPhase(ITaskTypes.Phase.Forming);
        _form(); // by the value that drew the seats
        _assertPhase(ITaskTypes.Phase.Committing);
        _assertConserved();
    }

    function test_settle_endsATaskWhoseStatisticsCannotBeHad() public {
        _toStatisticsScoring(false);
        _scoreAll(Scores.DOES_NOT_MATCH);
        tasks.settle(id, 0);
        _assertVoid(0, ITaskTypes.VoidReason.Mismatched);
        _assertPhase(ITaskTypes.Phase.Ended);
        vm.assertEq(_locked(AGGREGATOR, IStaking.Role.Aggregator), 100e18);
        vm.assertEq(tasks.claimable(OPERATOR), 1_000e18);
        _assertConserved();
    }

    function test_settle_slashesTheAggregatorByMajority() public {
        _judgeStatistics();
        _form();
        _commitAll();
        _fix(15);
        _publishDigest(0, _sumCohort(0, 0));
        _publishDigest(1, _sumCohort(1, 0));
        _draw();
        for (uint256 i = 0; i < VOTERS; ++i) {
            _score(i, _scores(i == 0 ? int64(1_000) : Scores.DOES_NOT_MATCH));
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            _reveal(i, _scores(i == 0 ? int64(1_000) : Scores.DOES_NOT_MATCH));
        }
        tasks.settle(id, 1);
        _assertVoid(1, ITaskTypes.VoidReason.Mismatched);
        vm.assertEq(tasks.explain(id, 1, AGGREGATOR).slash, 100e18);
        _form();
        _assertPhase(ITaskTypes.Phase.Committing);
    }

    /// @dev Half is no majority, so nobody is slashed. But too few voters are left to judge.
    function test_settle_halfIsNoMajority() public {
        _judgeStatistics();
        _form();
        _commitAll();
        _fix(15);
        _publishDigest(0, _sumCohort(0, 0));
        _publishDigest(1, _sumCohort(1, 0));
        _draw();
        _score(0, _scores(1_000));
        _score(1, _scores(Scores.DOES_NOT_MATCH));
        vm.prank(_voter(2));
        tasks.standDown(id, 1);
        _reveal(0, _scores(1_000));
        _reveal(1, _scores(Scores.DOES_NOT_MATCH));
        tasks.settle(id, 1);
        _assertVoid(1, ITaskTypes.VoidReason.TooFewScores);
        vm.assertEq(_locked(AGGREGATOR, IStaking.Role.Aggregator), 200e18);
        vm.assertEq(_locked(_hospital(0), IStaking.Role.Hospital), 100e18);
        _assertConserved();
    }

    /// @dev Voters without scores have no part in the medians, by which hospitals are slashed.
    function test_settle_judgesByThoseWhoScored() public {
        _judgeStatistics();
        _form();
        _commitAll();
        _fix(15);
        _publishDigest(0, _sumCohort(0, 0));
        _publishDigest(1, _sumCohort(1, 0));
        _draw();
        int64[3] memory said = [int64(1_000), Scores.DOES_NOT_MATCH, 1_100];
        for (uint256 i = 0; i < VOTERS; ++i) {
            _score(i, _scores(said[i]));
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            _reveal(i, _scores(said[i]));
        }
        tasks.settle(id, 1);
        vm.assertEq(tasks.roundState(id, 1).medians[0], 1_000);
        vm.assertEq(uint256(tasks.explain(id, 1, _voter(1)).reason), uint256(ITaskTypes.PayoutReason.Far));
        _assertConserved();
    }
}
