// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../interfaces/IStaking.sol";
import {ITaskTypes} from "../interfaces/ITaskTypes.sol";
import {Keys, Round, Task} from "../types/Task.sol";
import {Bits} from "./Bits.sol";
import {Medians} from "./Medians.sol";
import {Payouts} from "./Payouts.sol";
import {Scores} from "./Scores.sol";

/// @title What a judged round comes to, account by account. Settling pays by it, and `explain` repeats it later.
/// @dev Reads only what no later round changes: the round, the scores, the weights and the terms; and is given the budget,
///      which the round keeps. The plain reference is `consilium_chain/settlement.py`.
library Verdicts {
    using Bits for uint256;

    struct Verdict {
        uint256 number; // of the round
        int64[] medians; // per cohort, of the sum's scores
        uint256 accepted; // cohorts
        uint256 tests; // cohorts whose canary is told from the sum by the committee: bit map
        uint256 failed; // voters that passed a canary of these as good: bit map
        uint256 summed; // hospitals whose updates are in published sums
        uint256 withheld; // hospitals that committed and are missing from their cohorts' sums
        uint256 rejected; // hospitals in the sums of cohorts that are not accepted
        uint256 harmful; // of these, hospitals in the sums of harmful cohorts
        int64[][] ballots; // per voter: its scores, if it revealed
        int64[][] scored; // of these, all that do not say that nothing matches
        uint256[] gains; // per hospital: its claim on the hospitals' part
        uint256 totalGain;
        uint256 seats;
        uint256 hospitalBase;
        uint256 voterBase;
        uint256 aggregatorBase;
    }

    /// @param budget what the round may pay in all.
    function judge(Task storage task, uint256 number, uint256 budget) internal view returns (Verdict memory verdict) {
        ITaskTypes.TaskParams storage p = task.params;
        Round storage round = task.rounds[number];
        verdict.number = number;
        verdict.medians = new int64[](round.cohorts);
        _readBallots(task, round, verdict);
        verdict.gains = new uint256[](task.hospitals.length);
        verdict.seats = round.seated.count();
        verdict.withheld = withheld(task, number);
        verdict.hospitalBase = Payouts.portion(budget, p.hospitalShareBps);
        verdict.voterBase = Payouts.portion(budget, p.voterShareBps);
        verdict.aggregatorBase = Payouts.portion(budget, p.aggregatorShareBps);
        uint256 viable = round.viableCohorts;
        for (uint256 cohort = 0; viable >> cohort != 0; ++cohort) {
            if (!viable.has(cohort)) continue;
            int64 median = _median(verdict.scored, _place(round, cohort));
            verdict.medians[cohort] = median;
            uint256 members = task.cohorts[Keys.entry(number, cohort)].members & round.survivors;
            verdict.summed |= members;
            if (median < p.harmfulBelow) verdict.harmful |= members;
            if (median < p.acceptFloor) {
                verdict.rejected |= members;
            } else {
                verdict.accepted = verdict.accepted.with(cohort);
                _addGains(task, verdict, members, median);
                if (!p.canaries) continue;
                // Two numbers of 64 bits.
                int256 canary = _median(verdict.scored, _canaryPlace(round, cohort));
                if (median - canary >= int256(uint256(p.canaryMargin))) verdict.tests = verdict.tests.with(cohort);
            }
        }
        if (verdict.tests != 0) verdict.failed = _failed(round, verdict);
    }

    /// @notice By weight and by what its cohort improved.
    function ofHospital(Task storage task, Verdict memory verdict, uint256 index)
        internal
        view
        returns (ITaskTypes.Payout memory payout)
    {
        payout.role = IStaking.Role.Hospital;
        payout.base = verdict.hospitalBase;
        payout.reason = _hospitalReason(task.rounds[verdict.number], verdict, index);
        if (payout.reason < ITaskTypes.PayoutReason.Harmful) return payout;
        payout.whole = verdict.totalGain;
        payout.part = verdict.gains[index];
        payout.reward = Payouts.share(payout.base, payout.part, payout.whole);
    }

    /// @notice An even part of the seats, so that nobody gains by another voter's going unpaid.
    function ofVoter(Task storage task, Verdict memory verdict, uint256 index)
        internal
        view
        returns (ITaskTypes.Payout memory payout)
    {
        payout = silent(task.rounds[verdict.number], index, ITaskTypes.PayoutReason.Paid);
        payout.base = verdict.voterBase;
        if (payout.reason != ITaskTypes.PayoutReason.Paid) return payout;
        payout.whole = verdict.seats;
        payout.reason = _voterReason(task, verdict, index);
        if (payout.reason != ITaskTypes.PayoutReason.Paid) return payout;
        payout.part = 1;
        payout.reward = Payouts.share(payout.base, 1, payout.whole);
    }

    /// @notice By how much of what was committed made it into the sums.
    function ofAggregator(Task storage task, Verdict memory verdict)
        internal
        view
        returns (ITaskTypes.Payout memory payout)
    {
        Round storage round = task.rounds[verdict.number];
        payout.role = IStaking.Role.Aggregator;
        payout.reason = ITaskTypes.PayoutReason.Paid;
        payout.base = verdict.aggregatorBase;
        payout.part = _weight(task, verdict.summed);
        payout.whole = _weight(task, round.committed());
        payout.reward = Payouts.share(payout.base, payout.part, payout.whole);
    }

    /// @notice A voter that took no seat, or took one and did not reveal; `otherwise` for one that revealed.
    function silent(Round storage round, uint256 index, ITaskTypes.PayoutReason otherwise)
        internal
        view
        returns (ITaskTypes.Payout memory payout)
    {
        uint256 seated = round.seated;
        payout.role = IStaking.Role.Voter;
        payout.reason = otherwise;
        if (!seated.has(index)) {
            payout.reason = ITaskTypes.PayoutReason.NoSeat;
        } else if (!round.revealed.has(index)) {
            payout.reason = ITaskTypes.PayoutReason.NotRevealed;
            payout.whole = seated.count();
        }
    }

    function _hospitalReason(Round storage round, Verdict memory verdict, uint256 index)
        private
        view
        returns (ITaskTypes.PayoutReason)
    {
        if (!round.members.has(index)) return ITaskTypes.PayoutReason.SatOut;
        if (round.pending.has(index)) return ITaskTypes.PayoutReason.NotCommitted;
        if (round.guilty.has(index)) return ITaskTypes.PayoutReason.FalseUpload;
        if (!verdict.summed.has(index)) {
            return verdict.withheld.has(index) ? ITaskTypes.PayoutReason.Withheld : ITaskTypes.PayoutReason.NotInSum;
        }
        if (verdict.harmful.has(index)) return ITaskTypes.PayoutReason.Harmful;
        if (verdict.rejected.has(index)) return ITaskTypes.PayoutReason.Rejected;
        return verdict.gains[index] == 0 ? ITaskTypes.PayoutReason.NoImprovement : ITaskTypes.PayoutReason.Paid;
    }

    /// @notice Hospitals left out of the sum of a cohort that stayed when the survivors were fixed.
    function withheld(Task storage task, uint256 number) internal view returns (uint256 missing) {
        Round storage round = task.rounds[number];
        (uint256 viable, uint256 survivors) = (round.viableCohorts | round.droppedCohorts, round.survivors);
        if (survivors == 0) return 0; // not fixed
        for (uint256 cohort = 0; viable >> cohort != 0; ++cohort) {
            if (viable.has(cohort)) missing |= task.cohorts[Keys.entry(number, cohort)].members;
        }
        missing &= round.committed() & ~survivors;
    }

    /// @dev The place in a ballot of a sum's score; its canary's is the other of the cohort's two.
    function _place(Round storage round, uint256 cohort) private view returns (uint256) {
        return uint256(round.turnedCohorts).has(cohort) ? round.cohorts + cohort : cohort;
    }

    function _canaryPlace(Round storage round, uint256 cohort) private view returns (uint256) {
        return uint256(round.turnedCohorts).has(cohort) ? cohort : round.cohorts + cohort;
    }

    function _readBallots(Task storage task, Round storage round, Verdict memory verdict) private view {
        (uint256 revealed, uint256 mismatched) = (round.revealed, round.mismatched);
        uint256 size = task.params.canaries ? 2 * uint256(round.cohorts) : round.cohorts;
        verdict.ballots = new int64[][](task.voters.length);
        verdict.scored = new int64[][]((revealed & ~mismatched).count());
        uint256 next;
        for (uint256 i = 0; revealed >> i != 0; ++i) {
            if (!revealed.has(i)) continue;
            int64[] memory ballot = Scores.ballot(task.scores, verdict.number, i, size);
            verdict.ballots[i] = ballot;
            if (!mismatched.has(i)) verdict.scored[next++] = ballot;
        }
    }

    /// @dev The lower median at one place of the ballots.
    function _median(int64[][] memory ballots, uint256 place) private pure returns (int64) {
        int64[] memory scores = new int64[](ballots.length);
        for (uint256 i = 0; i < scores.length; ++i) {
            scores[i] = ballots[i][place];
        }
        return Medians.lower(scores);
    }

    /// @dev Who rated a canary at least as high as its sum, ties included. Who says that nothing matches rated nothing: it
    ///      goes unpaid, and no more, or an honest accuser among the lazy would answer for their silence.
    function _failed(Round storage round, Verdict memory verdict) private view returns (uint256 failed) {
        (uint256 tests, uint256 scored) = (verdict.tests, round.revealed & ~round.mismatched);
        for (uint256 cohort = 0; tests >> cohort != 0; ++cohort) {
            if (!tests.has(cohort)) continue;
            (uint256 place, uint256 canaryPlace) = (_place(round, cohort), _canaryPlace(round, cohort));
            for (uint256 i = 0; scored >> i != 0; ++i) {
                if (!scored.has(i)) continue;
                int64[] memory ballot = verdict.ballots[i];
                if (ballot[place] <= ballot[canaryPlace]) failed = failed.with(i);
            }
        }
    }

    /// @dev Of a voter that revealed.
    function _voterReason(Task storage task, Verdict memory verdict, uint256 index)
        private
        view
        returns (ITaskTypes.PayoutReason)
    {
        Round storage round = task.rounds[verdict.number];
        // With nothing to score there is nothing to test by: the committee judged who is named, and would not for nothing.
        bool isTested = verdict.tests != 0 || round.viableCohorts == 0;
        if (task.params.canaries && !isTested) return ITaskTypes.PayoutReason.Untested;
        if (round.mismatched.has(index)) return ITaskTypes.PayoutReason.Far;
        if (verdict.failed.has(index)) return ITaskTypes.PayoutReason.FailedCanary;
        return _isNear(task, verdict, index) ? ITaskTypes.PayoutReason.Paid : ITaskTypes.PayoutReason.Far;
    }

    function _addGains(Task storage task, Verdict memory verdict, uint256 members, int64 median) private view {
        for (uint256 i = 0; members >> i != 0; ++i) {
            if (!members.has(i)) continue;
            uint256 gain = Payouts.gain(task.hospitals[i].weight, median);
            verdict.gains[i] = gain;
            verdict.totalGain += gain;
        }
    }

    function _isNear(Task storage task, Verdict memory verdict, uint256 voter) private view returns (bool) {
        Round storage round = task.rounds[verdict.number];
        uint256 viable = round.viableCohorts;
        ITaskTypes.TaskParams storage p = task.params;
        for (uint256 cohort = 0; viable >> cohort != 0; ++cohort) {
            if (!viable.has(cohort)) continue;
            int64 score = verdict.ballots[voter][_place(round, cohort)];
            if (!Payouts.isNear(score, verdict.medians[cohort], p.toleranceAbs, p.toleranceBps)) return false;
        }
        return true;
    }

    function _weight(Task storage task, uint256 members) private view returns (uint256 total) {
        for (uint256 i = 0; members >> i != 0; ++i) {
            if (members.has(i)) total += task.hospitals[i].weight;
        }
    }
}
