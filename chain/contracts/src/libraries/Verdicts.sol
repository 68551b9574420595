// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../interfaces/IStaking.sol";
import {ITaskTypes} from "../interfaces/ITaskTypes.sol";
import {Keys, Round, Task} from "../types/Task.sol";
import {Bits} from "./Bits.sol";
import {Medians} from "./Medians.sol";
import {Payouts} from "./Payouts.sol";
import {Ranks} from "./Ranks.sol";
import {Scores} from "./Scores.sol";

/// @title The results of a round, account by account. Settling pays and slashes by them, and `explain` repeats them.
/// @notice There are two steps. First, cohorts are judged, and the round keeps the results. Then each account's payout
///         follows from the round alone, for any page of settling and any later call.
/// @dev It reads only state that no later round changes. The plain reference is
///      `consilium_chain/settlement/settlement.py`.
library Verdicts {
    using Bits for uint256;

    /// @notice The common input of all payouts of a round.
    struct Verdict {
        uint256 number; // the round's
        bool isPaid; // neither void nor the statistics round
        int64[] medians; // per cohort: median score of its sum
        uint256[] sums; // per cohort: the hospitals in its published sum, as a bit map; 0 without one
        uint256 summed; // the hospitals in all sums
        uint256 withheld; // hospitals that committed and are missing from their cohorts' sums
        uint256 seats;
    }

    /// @notice The result of the votes on one cohort.
    struct Judgement {
        int64 median; // median score of the sum
        bool isAccepted;
        bool isTest; // the committee can tell its decoy from the sum
        uint256 gain; // the claims of its hospitals together; meaningless in an arena, where they need all medians
    }

    /// @param raters bit map of the voters that revealed scores, without those that say that nothing matches.
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
        if (!p.decoys) return judgement;
        int256 decoy = _median(task, number, _scoreIndex(round, cohort, true), raters);
        judgement.isTest = judgement.median - decoy >= int256(uint256(p.decoyMargin));
    }

    /// @notice Reads a round whose cohorts are judged, or that is void, or the statistics round.
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

    /// @dev By weight and by the improvement of its cohort; in an arena by its rank.
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

    /// @notice Hospitals that committed, but are not in the sum of a cohort that stayed when the survivors were fixed.
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
        if (reason == ITaskTypes.VoidReason.NotDisclosed) return ITaskTypes.PayoutReason.NotDisclosed;
        if (reason == ITaskTypes.VoidReason.Mismatched) return ITaskTypes.PayoutReason.Mismatched;
        bool isMissed =
            reason == ITaskTypes.VoidReason.SurvivorsNotFixed || reason == ITaskTypes.VoidReason.NotPublished;
        return isMissed ? ITaskTypes.PayoutReason.NotPublished : ITaskTypes.PayoutReason.Void;
    }

    function _summed(Task storage task, uint256 number, uint256 cohort) private view returns (uint256) {
        return task.cohorts[Keys.entry(number, cohort)].members & task.rounds[number].survivors;
    }

    /// @dev A ballot's index of a cohort's score: as published in the first half, sign-flipped in the second.
    function _scoreIndex(Round storage round, uint256 cohort, bool ofDecoy) private view returns (uint256) {
        bool isFlipped = uint256(round.flippedCohorts).has(cohort) != ofDecoy;
        return isFlipped ? round.cohorts + cohort : cohort;
    }

    /// @dev The lower median of the raters' scores at one index of their ballots.
    function _median(Task storage task, uint256 number, uint256 index, uint256 raters) private view returns (int64) {
        int64[] memory scores = new int64[](raters.count());
        uint256 next;
        for (uint256 i = 0; raters >> i != 0; ++i) {
            if (raters.has(i)) scores[next++] = Scores.scoreAt(task.scores, number, i, index);
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
        if (median < task.params.acceptFloor) return (ITaskTypes.PayoutReason.Rejected, 0);
        uint256 decay = task.params.rankDecayBps;
        if (decay == 0) gain = Payouts.gain(task.hospitals[index].weight, median);
        else if (median >= task.params.rankFloor) gain = Ranks.claim(Ranks.rankOf(verdict.medians, cohort), decay);
        return (gain == 0 ? ITaskTypes.PayoutReason.NoImprovement : ITaskTypes.PayoutReason.Paid, gain);
    }

    /// @dev Silent voters are slashed in void rounds, too, if enough seats were taken.
    function _voterReason(Task storage task, Round storage round, Verdict memory verdict, uint256 index)
        private
        view
        returns (ITaskTypes.PayoutReason)
    {
        if (!verdict.isPaid && verdict.seats < task.params.minReveals) return _unpaid(round);
        if (!round.seated.has(index)) return ITaskTypes.PayoutReason.NoSeat;
        if (!round.revealed.has(index)) return ITaskTypes.PayoutReason.NotRevealed;
        if (!verdict.isPaid) return _unpaid(round);
        // Without sums there is nothing to test: the committee judged named cheaters, and is paid for that.
        bool isTested = round.tests != 0 || round.viableCohorts == 0;
        if (task.params.decoys && !isTested) return ITaskTypes.PayoutReason.Untested;
        // A voter that says that nothing matches rated nothing. It is only unpaid: a slash would hit an honest voter
        // among lazy ones.
        if (round.mismatched.has(index)) return ITaskTypes.PayoutReason.Far;
        return _ballotReason(task, round, verdict, index);
    }

    /// @dev The reason of a voter that rated. It fails if it rated a decoy at least as high as its sum.
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
            if (fails) return ITaskTypes.PayoutReason.FailedDecoy;
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
