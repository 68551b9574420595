// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../src/interfaces/IStaking.sol";
import {ITaskSettlement} from "../src/interfaces/ITaskSettlement.sol";
import {ITaskRounds} from "../src/interfaces/ITaskRounds.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Bits} from "../src/libraries/Bits.sol";
import {DecoyFixture} from "./utils/DecoyFixture.sol";
import {Lines} from "./utils/Crypto.sol";
import {Log} from "./utils/Vm.sol";

/// @notice Sums published as they are or sign-flipped, and disclosed after the reveals.
contract DisclosingTest is DecoyFixture {
    using Bits for uint256;

    function _toDisclosing(uint256 flipped) private {
        _toDecoyScoring(flipped);
        _judge(_honest());
        tasks.settle(id, 1);
    }

    // The path on which all goes well.

    /// forge-config: default.fuzz.runs = 16
    function test_round_settlesWhicheverSumsAreFlipped(uint8 flipped) public {
        _toDisclosing(flipped % 4);
        _assertPhase(ITaskTypes.Phase.Disclosing);
        _openAll();
        tasks.settle(id, 1);
        ITaskTypes.RoundState memory round = tasks.roundState(id, 1);
        vm.assertEq(uint256(round.outcome), uint256(ITaskTypes.Outcome.Settled));
        vm.assertEq(round.flippedCohorts, flipped % 4);
        vm.assertEq(round.medians.length, 2);
        vm.assertEq(round.medians[0], GOOD);
        vm.assertEq(round.medians[1], GOOD);
        vm.assertEq(_earned(_voter(0)), uint256(100e18) / 3);
        vm.assertEq(_earned(_hospital(3)), 140e18);
        _assertConserved();
    }

    function test_discloseDecoys_settlesInTheSameTransaction() public {
        _toDecoyScoring(1);
        _judge(_honest());
        bytes[] memory calls = new bytes[](3);
        for (uint256 cohort = 0; cohort < 2; ++cohort) {
            calls[cohort] = abi.encodeCall(
                ITaskSettlement.discloseDecoys, (id, 1, cohort, 0, _seed, _negatedDelta(1), _one(_disclosed(cohort, 0)))
            );
        }
        calls[2] = abi.encodeCall(ITaskSettlement.settle, (id, 1));
        vm.prank(STRANGER);
        tasks.multicall(calls);
        vm.assertEq(uint256(tasks.roundState(id, 1).outcome), uint256(ITaskTypes.Outcome.Settled));
    }

    function test_discloseDecoys_disclosesSeveralBlobsOfACohort() public {
        ITaskTypes.TaskParams memory params = _decoyParams();
        (params.updateBlobs, params.cohorts) = (3, 1);
        _toDecoyPublishing(params);
        _flip(1);
        _setDecoys();
        ITaskTypes.Disclosed[] memory disclosed = new ITaskTypes.Disclosed[](3);
        for (uint256 blob = 0; blob < 3; ++blob) {
            _publish(0, blob, _publishedHash(0, blob, true));
            disclosed[blob] = _disclosed(0, blob);
        }
        _draw();
        _judge(_honest());
        ITaskTypes.Disclosed[] memory rest = new ITaskTypes.Disclosed[](2);
        (rest[0], rest[1]) = (disclosed[1], disclosed[2]);
        tasks.discloseDecoys(id, 1, 0, 1, _seed, _negatedDelta(3), rest);
        vm.assertEq(_roundState().summedCohorts, 0);
        ITaskTypes.Commitments memory all = disclosed[0].commitments;
        (bytes memory hospitals, bytes memory points) = _shown(all, _survivors(1, 0));
        vm.assertEq(hospitals, all.order);
        vm.expectEmit(address(tasks));
        emit ITaskTypes.PointsShown(id, 1, 0, 0, hospitals, points);
        vm.expectEmit(address(tasks));
        emit ITaskTypes.CohortDisclosed(id, 1, 0, true);
        tasks.discloseDecoys(id, 1, 0, 0, _seed, _negatedDelta(3), _one(disclosed[0]));
        vm.assertEq(_roundState().flippedCohorts, 1);
    }

    // Publishing.

    function test_setDecoys_refusals() public {
        _propose(_decoyParams());
        _joinAll();
        _commitAll();
        _fix(15);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NotADecoyRound.selector, id, 0));
        vm.prank(AGGREGATOR);
        tasks.setDecoys(id, 0, "", "");
        _publishAll();
        _form();
        _commitAll();
        _fix(15);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NotAggregator.selector, STRANGER));
        vm.prank(STRANGER);
        tasks.setDecoys(id, 1, "", "");
        vm.expectEmit(address(tasks));
        emit ITaskTypes.DecoysSet(id, 1, keccak256(abi.encode(TAG, _seed)), keccak256(_negatedDelta(1)));
        _setDecoys();
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.DecoysAlreadySet.selector, id, 1));
        vm.prank(AGGREGATOR);
        tasks.setDecoys(id, 1, "", "");
    }

    function test_publish_refusals() public {
        _toDecoyPublishing(_decoyParams());
        _setBlob(keccak256("blob"));
        vm.startPrank(AGGREGATOR);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.DecoysNotSet.selector, id, 1));
        tasks.publish(id, 1, 0, 0, 0, 1);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.DecoyRound.selector, id, 1));
        tasks.sumCommitments(id, 1, 0, 0, ITaskTypes.Commitments("", new bytes32[](0), ""));
        vm.stopPrank();
        _setDecoys();
        vm.startPrank(AGGREGATOR);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.BlobMissing.selector, 0, 0));
        tasks.publish(id, 1, 0, 0, 1, 1);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.BlobUnknown.selector, 1, 1));
        tasks.publish(id, 1, 0, 1, 0, 1);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NotByDigest.selector, id));
        tasks.publishDigests(id, 1, 0, 0, new bytes32[](1));
        tasks.publish(id, 1, 0, 0, 0, 1);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.AlreadyPublished.selector, 0, 0));
        tasks.publish(id, 1, 0, 0, 0, 1);
        vm.stopPrank();
        vm.assertEq(tasks.expectedBlobHash(id, 1, 0, 0), keccak256("blob"));
    }

    // Refused disclosures.

    function test_discloseDecoys_refusals() public {
        _toDecoyScoring(2);
        ITaskTypes.Disclosed[] memory good = _one(_disclosed(0, 0));
        bytes memory negatedDelta = _negatedDelta(1);
        vm.expectRevert(
            abi.encodeWithSelector(
                ITaskTypes.WrongPhase.selector, id, ITaskTypes.Phase.Scoring, ITaskTypes.Phase.Disclosing
            )
        );
        tasks.discloseDecoys(id, 1, 0, 0, _seed, negatedDelta, good);
        int64[][] memory ballots = _honest();
        for (uint256 i = 0; i < VOTERS; ++i) {
            _score(i, ballots[i]);
        }
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PhaseNotOver.selector, id, tasks.state(id).deadline));
        tasks.discloseDecoys(id, 1, 0, 0, _seed, negatedDelta, good);
        for (uint256 i = 0; i < VOTERS; ++i) {
            _reveal(i, ballots[i]);
        }

        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.DecoysMismatch.selector, id, 1));
        tasks.discloseDecoys(id, 1, 0, 0, keccak256("another"), negatedDelta, good);
        bytes memory longer = _negatedDelta(2);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.DecoysMismatch.selector, id, 1));
        tasks.discloseDecoys(id, 1, 0, 0, _seed, longer, good);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.CohortUnknown.selector, 2));
        tasks.discloseDecoys(id, 1, 2, 0, _seed, negatedDelta, good);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.BlobUnknown.selector, 1, 1));
        tasks.discloseDecoys(id, 1, 0, 1, _seed, negatedDelta, good);
        ITaskTypes.Disclosed[] memory bad = _one(_disclosed(1, 0));
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.CommitmentMismatch.selector, 0, 0));
        tasks.discloseDecoys(id, 1, 0, 0, _seed, negatedDelta, bad);
        bad = _one(_disclosed(0, 0));
        bad[0].first ^= 1;
        _refusesMismatch(0, bad);
        bad = _one(_disclosed(0, 0));
        (bad[0].first, bad[0].second) = (bad[0].second, bad[0].first);
        _refusesMismatch(0, bad);

        tasks.discloseDecoys(id, 1, 0, 0, _seed, negatedDelta, good);
        tasks.discloseDecoys(id, 1, 0, 0, _seed, negatedDelta, good); // passed over
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.CohortsNotDisclosed.selector, 1, 3));
        tasks.settle(id, 1);
        _pass();
        good = _one(_disclosed(1, 0));
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PhaseOver.selector, id, tasks.state(id).deadline));
        tasks.discloseDecoys(id, 1, 1, 0, _seed, negatedDelta, good);
    }

    function _refusesMismatch(uint256 cohort, ITaskTypes.Disclosed[] memory disclosed) private {
        bytes memory negatedDelta = _negatedDelta(1);
        try tasks.discloseDecoys(id, 1, cohort, 0, _seed, negatedDelta, disclosed) {
            vm.assertTrue(false);
        } catch (bytes memory reason) {
            vm.assertEq(bytes32(bytes4(reason)), bytes32(ITaskTypes.BlobMismatch.selector));
        }
    }

    /// @dev Each blob is shown once, however often it is disclosed; a skipped one needs no right points.
    function test_discloseDecoys_showsEachBlobOnce() public {
        _toDisclosing(0);
        _discloseCohort(0);
        ITaskTypes.Disclosed[] memory again = _one(_disclosed(1, 0));
        vm.recordLogs();
        tasks.discloseDecoys(id, 1, 0, 0, _seed, _negatedDelta(1), again);
        Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i = 0; i < logs.length; ++i) {
            vm.assertTrue(logs[i].topics[0] != ITaskTypes.PointsShown.selector);
        }
    }

    /// @dev Whoever left a cohort's sum keeps its point to itself.
    function test_discloseDecoys_showsSurvivorsAlone() public {
        ITaskTypes.TaskParams memory params = _decoyParams();
        params.cohorts = 1;
        _propose(params);
        _joinAll();
        _runTraining();
        _form();
        for (uint256 i = HOSPITALS; i > 0; --i) {
            _commit(i - 1);
        }
        _fix(13);
        _flip(1);
        _setDecoys();
        _publishCohorts();
        _draw();
        _judge(_honest());
        tasks.settle(id, 1);
        ITaskTypes.Disclosed memory disclosed = _disclosed(0, 0);
        (bytes memory hospitals, bytes memory points) = _shown(disclosed.commitments, 13);
        vm.assertEq(hospitals, hex"030200");
        ITaskTypes.Disclosed memory bad = _disclosed(0, 0);
        bad.commitments.others[0] ^= bytes32(uint256(1));
        bytes memory negatedDelta = _negatedDelta(1);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.CommitmentMismatch.selector, 0, 0));
        tasks.discloseDecoys(id, 1, 0, 0, _seed, negatedDelta, _one(bad));
        vm.expectEmit(address(tasks));
        emit ITaskTypes.PointsShown(id, 1, 0, 0, hospitals, points);
        tasks.discloseDecoys(id, 1, 0, 0, _seed, negatedDelta, _one(disclosed));
        vm.assertEq(_roundState().summedCohorts, 1);
    }

    /// @dev The published blob fixes the blinders: any others are refused.
    /// forge-config: default.fuzz.runs = 32
    function test_attack_changedBlobCannotBeDisclosed(uint256 first, uint256 second) public {
        _toDecoyPublishing(_decoyParams());
        _flip(1);
        _setDecoys();
        _publish(0, 0, Lines.hash(Lines.from("something else")));
        _publish(1, 0, _publishedHash(1, 0, false));
        _draw();
        _judge(_honest());
        ITaskTypes.Disclosed memory disclosed = _disclosed(0, 0);
        (disclosed.first, disclosed.second) = (first, second);
        _refusesMismatch(0, _one(disclosed));
        _discloseCohort(1);
        _pass();
        tasks.tick(id);
        _assertBlamed(ITaskTypes.VoidReason.NotDisclosed, ITaskTypes.PayoutReason.NotDisclosed);
    }

    /// @dev The committed seed fixes which one is the sum and which one the decoy.
    function test_attack_sumPublishedTheOtherWayCannotBeDisclosed() public {
        _toDecoyPublishing(_decoyParams());
        _flip(1);
        _setDecoys();
        _publish(0, 0, _publishedHash(0, 0, false));
        _publish(1, 0, _publishedHash(1, 0, true));
        _draw();
        _judge(_honest());
        _refusesMismatch(0, _one(_disclosed(0, 0)));
        _refusesMismatch(1, _one(_disclosed(1, 0)));
    }

    function test_attack_sumWithoutASurvivorCannotBeDisclosed() public {
        _toDecoyPublishing(_decoyParams());
        _flip(0);
        _setDecoys();
        uint256 survivors = _survivors(1, 0);
        (, bytes32 hash) = _sum(1, 0, survivors & (survivors - 1), 0);
        _publish(0, 0, hash);
        _publish(1, 0, _publishedHash(1, 0, false));
        _draw();
        _judge(_honest());
        _refusesMismatch(0, _one(_disclosed(0, 0)));
    }

    /// @dev Silent voters lose theirs, too.
    function test_tick_slashesAnAggregatorThatDoesNotOpen() public {
        _toDecoyScoring(3);
        int64[][] memory ballots = _honest();
        for (uint256 i = 0; i < VOTERS; ++i) {
            _score(i, ballots[i]);
        }
        _reveal(0, ballots[0]);
        _reveal(1, ballots[1]);
        _pass();
        tasks.tick(id);
        _assertPhase(ITaskTypes.Phase.Disclosing);
        vm.assertEq(_locked(_voter(2), IStaking.Role.Voter), 50e18);
        _discloseCohort(0);
        _pass();
        tasks.tick(id);
        _assertBlamed(ITaskTypes.VoidReason.NotDisclosed, ITaskTypes.PayoutReason.NotDisclosed);
        vm.assertEq(tasks.explain(id, 1, _voter(2)).slash, 25e18);
        vm.assertEq(_locked(_voter(2), IStaking.Role.Voter), 25e18);
    }

    /// @dev After all is disclosed, a passed deadline is nobody's fault.
    function test_tick_settlesWhatIsDisclosed() public {
        _toDisclosing(1);
        _openAll();
        _pass();
        tasks.tick(id);
        vm.assertEq(uint256(tasks.roundState(id, 1).outcome), uint256(ITaskTypes.Outcome.Settled));
        vm.assertEq(_locked(AGGREGATOR, IStaking.Role.Aggregator), 200e18);
    }

    function _assertBlamed(ITaskTypes.VoidReason reason, ITaskTypes.PayoutReason said) private view {
        _assertVoid(1, reason);
        ITaskTypes.Payout memory payout = tasks.explain(id, 1, AGGREGATOR);
        vm.assertEq(uint256(payout.reason), uint256(said));
        vm.assertEq(payout.slash, 100e18);
        vm.assertEq(_locked(AGGREGATOR, IStaking.Role.Aggregator), 100e18);
        vm.assertEq(_earned(_voter(0)), 0);
        vm.assertEq(_earned(_hospital(0)), 0);
        _assertConserved();
    }

    // Voters and their ballots.

    function _settleBallots(uint256 flipped, int64[][] memory ballots) private {
        _judge(ballots);
        _openAll();
        tasks.settle(id, 1);
        vm.assertEq(tasks.roundState(id, 1).flippedCohorts, flipped);
        _assertConserved();
    }

    function _says(uint256 voter, ITaskTypes.PayoutReason reason, uint256 slash) private view {
        ITaskTypes.Payout memory payout = tasks.explain(id, 1, _voter(voter));
        vm.assertEq(uint256(payout.reason), uint256(reason));
        vm.assertEq(payout.slash, slash);
        vm.assertEq(_locked(_voter(voter), IStaking.Role.Voter), 50e18 - slash);
        vm.assertTrue((_earned(_voter(voter)) > 0) == (reason == ITaskTypes.PayoutReason.Paid));
    }

    /// forge-config: default.fuzz.runs = 32
    function test_settle_slashesWhoPassesADecoy(uint8 flipped, int64 each) public {
        _toDecoyScoring(flipped % 4);
        int64[][] memory ballots = _honest();
        ballots[2] = _constant(each % 1_000_000); // ties fail, whatever the constant
        _settleBallots(flipped % 4, ballots);
        _says(0, ITaskTypes.PayoutReason.Paid, 0);
        _says(2, ITaskTypes.PayoutReason.FailedDecoy, 25e18);
    }

    function test_settle_slashesWhoTurnsOneCohortRound() public {
        _toDecoyScoring(1);
        int64[][] memory ballots = _honest();
        (ballots[1][1], ballots[1][3]) = (ballots[1][3], ballots[1][1]);
        _settleBallots(1, ballots);
        _says(1, ITaskTypes.PayoutReason.FailedDecoy, 25e18);
        _says(2, ITaskTypes.PayoutReason.Paid, 0);
    }

    function test_settle_paysNoVoterWhereNoPairCounts() public {
        _toDecoyScoring(2);
        int64[][] memory ballots = new int64[][](VOTERS);
        for (uint256 i = 0; i < VOTERS; ++i) {
            ballots[i] = i == 0 ? _constant(0) : _ballot(GOOD, GOOD - int64(MARGIN) + 1);
        }
        _settleBallots(2, ballots);
        for (uint256 i = 0; i < VOTERS; ++i) {
            _says(i, ITaskTypes.PayoutReason.Untested, 0);
        }
        vm.assertGt(_earned(_hospital(0)), 0);
    }

    function test_settle_countsAPairFromTheMarginOn() public {
        _toDecoyScoring(2);
        int64[][] memory ballots = new int64[][](VOTERS);
        for (uint256 i = 0; i < VOTERS; ++i) {
            ballots[i] = i == 0 ? _constant(GOOD) : _ballot(GOOD, GOOD - int64(MARGIN));
        }
        _settleBallots(2, ballots);
        _says(0, ITaskTypes.PayoutReason.FailedDecoy, 25e18);
        _says(1, ITaskTypes.PayoutReason.Paid, 0);
    }

    /// @dev A sum that the committee rejects arms no test: its decoy may be good.
    function test_settle_testsNobodyByARejectedSum() public {
        _toDecoyScoring(0);
        int64[][] memory ballots = new int64[][](VOTERS);
        for (uint256 i = 0; i < VOTERS; ++i) {
            ballots[i] = _ballot(-500, i == 0 ? int64(-500) : int64(-9_000));
        }
        _settleBallots(0, ballots);
        _says(0, ITaskTypes.PayoutReason.Untested, 0);
    }

    // Mismatches.

    function test_settle_slashesTheAggregatorByMajority() public {
        _toDecoyScoring(1);
        int64[][] memory ballots = _honest();
        (ballots[0], ballots[2]) = (_mismatch(), _mismatch());
        _judge(ballots);
        vm.assertEq(_roundState().mismatched, 5);
        tasks.settle(id, 1);
        _assertBlamed(ITaskTypes.VoidReason.Mismatched, ITaskTypes.PayoutReason.Mismatched);
    }

    /// @dev It is unpaid, for its scores are far from the medians, and not slashed.
    function test_settle_goesOnWhereAMinorityFindsNoMatch() public {
        _toDecoyScoring(1);
        int64[][] memory ballots = _honest();
        ballots[1] = _mismatch();
        _settleBallots(1, ballots);
        _says(1, ITaskTypes.PayoutReason.Far, 0);
        _says(0, ITaskTypes.PayoutReason.Paid, 0);
    }

    function test_settle_takesNoWordForIt_whereTheContractCompared() public {
        _toScoring();
        int64[][] memory ballots = new int64[][](VOTERS);
        for (uint256 i = 0; i < VOTERS; ++i) {
            ballots[i] = _scores(type(int64).min + 1);
        }
        _judge(ballots);
        vm.assertEq(_roundState().mismatched, 0);
        tasks.settle(id, 1);
        vm.assertEq(_locked(AGGREGATOR, IStaking.Role.Aggregator), 200e18);
    }
}
