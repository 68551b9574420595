// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../interfaces/IStaking.sol";
import {ITaskTypes} from "../interfaces/ITaskTypes.sol";
import {Keys, Round, Task} from "../types/Task.sol";
import {Bits} from "./Bits.sol";
import {Payouts} from "./Payouts.sol";
import {Scores} from "./Scores.sol";

/// @title What a judged round comes to, account by account. Settling pays by it, and `explain` repeats it later.
/// @dev Reads only what no later round changes: the round, the scores, the weights and the terms; and is given the
///      medians and the budget, which the round keeps. The plain reference is `consilium_chain/settlement.py`.
library Verdicts {
    using Bits for uint256;

    struct Verdict {
        uint256 number; // of the round
        int64[] medians; // per cohort
        uint256 accepted; // cohorts
        uint256 rejected; // hospitals in the sums of cohorts that are not accepted
        uint256 harmful; // of these, hospitals in the sums of harmful cohorts
        uint256[] gains; // per hospital: its claim on the hospitals' part
        uint256 totalGain;
        uint256 seats;
        uint256 hospitalBase;
        uint256 voterBase;
        uint256 aggregatorBase;
    }

    /// @param budget what the round may pay in all.
    function judge(Task storage task, uint256 number, int64[] memory medians, uint256 budget)
        internal
        view
        returns (Verdict memory verdict)
    {
        ITaskTypes.TaskParams storage p = task.params;
        Round storage round = task.rounds[number];
        verdict.number = number;
        verdict.medians = medians;
        verdict.gains = new uint256[](task.hospitals.length);
        verdict.seats = round.seated.count();
        verdict.hospitalBase = Payouts.portion(budget, p.hospitalShareBps);
        verdict.voterBase = Payouts.portion(budget, p.voterShareBps);
        verdict.aggregatorBase = Payouts.portion(budget, p.aggregatorShareBps);
        uint256 viable = round.viableCohorts;
        for (uint256 cohort = 0; viable >> cohort != 0; ++cohort) {
            if (!viable.has(cohort)) continue;
            int64 median = medians[cohort];
            uint256 members = task.cohorts[Keys.entry(number, cohort)].members & round.survivors;
            if (median < p.harmfulBelow) verdict.harmful |= members;
            if (median < p.acceptFloor) {
                verdict.rejected |= members;
            } else {
                verdict.accepted = verdict.accepted.with(cohort);
                _addGains(task, verdict, members, median);
            }
        }
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
        if (!_isNear(task, verdict, index)) {
            payout.reason = ITaskTypes.PayoutReason.Far;
            return payout;
        }
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
        payout.part = _weight(task, round.survivors);
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
        if (!round.survivors.has(index)) return ITaskTypes.PayoutReason.NotInSum;
        if (verdict.harmful.has(index)) return ITaskTypes.PayoutReason.Harmful;
        if (verdict.rejected.has(index)) return ITaskTypes.PayoutReason.Rejected;
        return verdict.gains[index] == 0 ? ITaskTypes.PayoutReason.NoImprovement : ITaskTypes.PayoutReason.Paid;
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
        uint256 viable = task.rounds[verdict.number].viableCohorts;
        ITaskTypes.TaskParams storage p = task.params;
        for (uint256 cohort = 0; viable >> cohort != 0; ++cohort) {
            if (!viable.has(cohort)) continue;
            int64 score = Scores.load(task.scores, verdict.number, voter, cohort);
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
