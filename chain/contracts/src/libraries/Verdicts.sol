// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../interfaces/IStaking.sol";
import {ITaskTypes} from "../interfaces/ITaskTypes.sol";
import {Keys, Round, Task} from "../types/Task.sol";
import {Bits} from "./Bits.sol";
import {Medians} from "./Medians.sol";
import {Payouts} from "./Payouts.sol";
import {Scores} from "./Scores.sol";

/// @title What a round comes to, account by account. Settling pays and slashes by it, and `explain` repeats it later.
/// @notice Two steps: cohorts are judged, and what that gives is kept in the round; then each account's part follows from
///         the round alone, whichever page of settling, or later call, asks for it.
/// @dev Reads only what no later round changes. The plain reference is `consilium_chain/settlement.py`.
library Verdicts {
    using Bits for uint256;

    /// @notice What all accounts' parts have in common.
    struct Verdict {
        uint256 number; // of the round
        bool isPaid; // neither void nor the statistics round
        int64[] medians; // per cohort, of the sum's scores
        uint256[] sums; // per cohort: the hospitals in its published sum, as a bit map; 0 without one
        uint256 summed; // all of them
        uint256 withheld; // hospitals that committed and are missing from their cohorts' sums
        uint256 seats;
    }

    /// @notice Votes on one cohort, and what they come to.
    struct Judgement {
        int64 median; // of the sum's scores
        bool isAccepted;
        bool isTest; // its canary is told from the sum by the committee
        uint256 gain; // what its hospitals claim together
    }

    /// @param raters voters that revealed, and do not say that nothing matches: bit map.
    function judge(Task storage task, uint256 number, uint256 cohort, uint256 raters)
        internal
        view
        returns (Judgement memory judgement)
    {
        ITaskTypes.TaskParams storage p = task.params;
        Round storage round = task.rounds[number];
        judgement.median = _median(task, number, _scoreIndex(round, cohort, false), raters);
        judgement.isAccepted = judgement.median >= p.acceptFloor;
        if (!judgement.isAccepted) return judgement;
        judgement.gain = Payouts.gain(_weight(task, _summed(task, number, cohort)), judgement.median);
        if (!p.canaries) return judgement;
        // Two numbers of 64 bits.
        int256 canary = _median(task, number, _scoreIndex(round, cohort, true), raters);
        judgement.isTest = judgement.median - canary >= int256(uint256(p.canaryMargin));
    }

    /// @notice Of a round whose cohorts are judged, or which is void, or without judgement.
    function read(Task storage task, uint256 number) internal view returns (Verdict memory verdict) {
        Round storage round = task.rounds[number];
        verdict.number = number;
        verdict.isPaid = number != 0 && round.voidReason == ITaskTypes.VoidReason.None;
        verdict.withheld = withheld(task, number);
        verdict.seats = round.seated.count();
        if (!verdict.isPaid) return verdict;
        verdict.medians = round.medians;
        verdict.sums = new uint256[](round.cohorts);
        uint256 viable = round.viableCohorts;
        for (uint256 cohort = 0; viable >> cohort != 0; ++cohort) {
            if (!viable.has(cohort)) continue;
            verdict.sums[cohort] = _summed(task, number, cohort);
            verdict.summed |= verdict.sums[cohort];
        }
    }

    /// @notice A member's payout, without its slash.
    function ofMember(Task storage task, Verdict memory verdict, IStaking.Role role, uint256 index)
        internal
        view
        returns (ITaskTypes.Payout memory payout)
    {
        Round storage round = task.rounds[verdict.number];
        payout.role = role;
        if (role == IStaking.Role.Hospital) _ofHospital(task, round, verdict, index, payout);
        else if (role == IStaking.Role.Voter) _ofVoter(task, round, verdict, index, payout);
        else _ofAggregator(task, round, verdict, payout);
    }

    /// @dev By weight and by the improvement of its cohort.
    function _ofHospital(
        Task storage task,
        Round storage round,
        Verdict memory verdict,
        uint256 index,
        ITaskTypes.Payout memory payout
    ) private view {
        if (verdict.isPaid) payout.base = Payouts.portion(round.budget, task.params.hospitalShareBps);
        (payout.reason, payout.part) = _hospitalReason(task, round, verdict, index);
        if (payout.reason < ITaskTypes.PayoutReason.Harmful) return;
        payout.whole = round.totalGain;
        payout.reward = Payouts.share(payout.base, payout.part, payout.whole);
    }

    /// @dev An even part of the seats, so that nobody gains if another voter goes unpaid.
    function _ofVoter(
        Task storage task,
        Round storage round,
        Verdict memory verdict,
        uint256 index,
        ITaskTypes.Payout memory payout
    ) private view {
        if (verdict.isPaid) payout.base = Payouts.portion(round.budget, task.params.voterShareBps);
        payout.reason = _voterReason(task, round, verdict, index);
        if (payout.reason > ITaskTypes.PayoutReason.NoSeat) payout.whole = verdict.seats;
        if (payout.reason != ITaskTypes.PayoutReason.Paid) return;
        payout.part = 1;
        payout.reward = Payouts.share(payout.base, 1, payout.whole);
    }

    /// @dev By the share of the committed weight that is in the sums, if each step came in time.
    function _ofAggregator(
        Task storage task,
        Round storage round,
        Verdict memory verdict,
        ITaskTypes.Payout memory payout
    ) private view {
        if (!verdict.isPaid) {
            payout.reason = aggregatorUnpaid(round.voidReason);
            return;
        }
        payout.base = Payouts.portion(round.budget, task.params.aggregatorShareBps);
        payout.part = _weight(task, verdict.summed);
        payout.whole = _weight(task, round.committed());
        payout.reason = round.late ? ITaskTypes.PayoutReason.Late : ITaskTypes.PayoutReason.Paid;
        if (!round.late) payout.reward = Payouts.share(payout.base, payout.part, payout.whole);
    }

    /// @notice Hospitals left out of the sum of a cohort that stayed when the survivors were fixed.
    function withheld(Task storage task, uint256 number) internal view returns (uint256 missing) {
        Round storage round = task.rounds[number];
        (uint256 viable, uint256 survivors) = (round.viableCohorts | round.droppedCohorts, round.survivors);
        if (survivors == 0) return 0; // not fixed
        missing = round.committed() & ~survivors;
        if (missing == 0) return 0;
        uint256 members;
        for (uint256 cohort = 0; viable >> cohort != 0; ++cohort) {
            if (viable.has(cohort)) members |= task.cohorts[Keys.entry(number, cohort)].members;
        }
        missing &= members;
    }

    function aggregatorUnpaid(ITaskTypes.VoidReason reason) internal pure returns (ITaskTypes.PayoutReason) {
        if (reason == ITaskTypes.VoidReason.None) return ITaskTypes.PayoutReason.Statistics;
        if (reason == ITaskTypes.VoidReason.NotOpened) return ITaskTypes.PayoutReason.NotOpened;
        if (reason == ITaskTypes.VoidReason.Mismatched) return ITaskTypes.PayoutReason.Mismatched;
        bool isMissed =
            reason == ITaskTypes.VoidReason.SurvivorsNotFixed || reason == ITaskTypes.VoidReason.NotPublished;
        return isMissed ? ITaskTypes.PayoutReason.NotPublished : ITaskTypes.PayoutReason.Void;
    }

    function _summed(Task storage task, uint256 number, uint256 cohort) private view returns (uint256) {
        return task.cohorts[Keys.entry(number, cohort)].members & task.rounds[number].survivors;
    }

    /// @dev A ballot's index of a cohort's score: as published in the first half, sign-flipped in the second.
    function _scoreIndex(Round storage round, uint256 cohort, bool ofCanary) private view returns (uint256) {
        bool isFlipped = uint256(round.turnedCohorts).has(cohort) != ofCanary;
        return isFlipped ? round.cohorts + cohort : cohort;
    }

    /// @dev The lower median at one place of the ballots.
    function _median(Task storage task, uint256 number, uint256 place, uint256 raters) private view returns (int64) {
        int64[] memory scores = new int64[](raters.count());
        uint256 next;
        for (uint256 i = 0; raters >> i != 0; ++i) {
            if (raters.has(i)) scores[next++] = Scores.scoreAt(task.scores, number, i, place);
        }
        return Medians.lower(scores);
    }

    function _hospitalReason(Task storage task, Round storage round, Verdict memory verdict, uint256 index)
        private
        view
        returns (ITaskTypes.PayoutReason, uint256 gain)
    {
        if (round.guilty.has(index)) return (ITaskTypes.PayoutReason.FalseUpload, 0);
        if (verdict.withheld.has(index)) return (ITaskTypes.PayoutReason.Withheld, 0);
        if (!verdict.isPaid) return (_unpaid(round), 0);
        if (!round.members.has(index)) return (ITaskTypes.PayoutReason.SatOut, 0);
        if (round.pending.has(index)) return (ITaskTypes.PayoutReason.NotCommitted, 0);
        if (!verdict.summed.has(index)) return (ITaskTypes.PayoutReason.NotInSum, 0);
        uint256 cohort;
        while (!verdict.sums[cohort].has(index)) ++cohort;
        int64 median = verdict.medians[cohort];
        if (median < task.params.harmfulBelow) return (ITaskTypes.PayoutReason.Harmful, 0);
        if (!uint256(round.acceptedCohorts).has(cohort)) return (ITaskTypes.PayoutReason.Rejected, 0);
        gain = Payouts.gain(task.hospitals[index].weight, median);
        return (gain == 0 ? ITaskTypes.PayoutReason.NoImprovement : ITaskTypes.PayoutReason.Paid, gain);
    }

    /// @dev Who kept silent is slashed in void rounds, too, if there were seats enough to reveal.
    function _voterReason(Task storage task, Round storage round, Verdict memory verdict, uint256 index)
        private
        view
        returns (ITaskTypes.PayoutReason)
    {
        if (!verdict.isPaid && verdict.seats < task.params.minReveals) return _unpaid(round);
        if (!round.seated.has(index)) return ITaskTypes.PayoutReason.NoSeat;
        if (!round.revealed.has(index)) return ITaskTypes.PayoutReason.NotRevealed;
        if (!verdict.isPaid) return _unpaid(round);
        // With nothing to score there is nothing to test by: the committee judged who is named, and would not for nothing.
        bool isTested = round.tests != 0 || round.viableCohorts == 0;
        if (task.params.canaries && !isTested) return ITaskTypes.PayoutReason.Untested;
        // Who says that nothing matches rated nothing: it goes unpaid, and no more, or an honest accuser among the lazy would
        // answer for their silence.
        if (round.mismatched.has(index)) return ITaskTypes.PayoutReason.Far;
        return _ballotReason(task, round, verdict, index);
    }

    /// @dev Of a voter that rated: it fails by a canary rated at least as high as its sum, ties included.
    function _ballotReason(Task storage task, Round storage round, Verdict memory verdict, uint256 index)
        private
        view
        returns (ITaskTypes.PayoutReason reason)
    {
        ITaskTypes.TaskParams storage p = task.params;
        reason = ITaskTypes.PayoutReason.Paid;
        (uint256 viable, uint256 tests) = (round.viableCohorts, round.tests);
        for (uint256 cohort = 0; viable >> cohort != 0; ++cohort) {
            if (!viable.has(cohort)) continue;
            int64 score = Scores.scoreAt(task.scores, verdict.number, index, _scoreIndex(round, cohort, false));
            bool fails = tests.has(cohort)
                && score <= Scores.scoreAt(task.scores, verdict.number, index, _scoreIndex(round, cohort, true));
            if (fails) return ITaskTypes.PayoutReason.FailedCanary;
            bool isNear = Payouts.isNear(score, verdict.medians[cohort], p.toleranceAbs, p.toleranceBps);
            if (!isNear) reason = ITaskTypes.PayoutReason.Far;
        }
    }

    function _unpaid(Round storage round) private view returns (ITaskTypes.PayoutReason) {
        bool isVoid = round.voidReason != ITaskTypes.VoidReason.None;
        return isVoid ? ITaskTypes.PayoutReason.Void : ITaskTypes.PayoutReason.Statistics;
    }

    function _weight(Task storage task, uint256 members) private view returns (uint256 total) {
        for (uint256 i = 0; members >> i != 0; ++i) {
            if (members.has(i)) total += task.hospitals[i].weight;
        }
    }
}
