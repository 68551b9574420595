// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../interfaces/IStaking.sol";
import {ITaskRounds} from "../interfaces/ITaskRounds.sol";
import {Bits} from "../libraries/Bits.sol";
import {Medians} from "../libraries/Medians.sol";
import {Payouts} from "../libraries/Payouts.sol";
import {Scores} from "../libraries/Scores.sol";
import {Keys, Round, Task} from "../types/Task.sol";
import {TaskBase} from "./TaskBase.sol";

/// @title The end of a round: judgement, rewards and slashes.
/// @notice What a round may pay is an even part of the pool. What it does not pay stays in the pool.
abstract contract Settling is TaskBase, ITaskRounds {
    using Bits for uint256;

    struct Judgement {
        int64[] medians; // per cohort
        uint256 accepted; // cohorts
        uint256 harmful; // hospitals in the sums of harmful cohorts
        uint256[] gains; // per hospital: its claim on the hospitals' part
        uint256 totalGain;
    }

    /// @dev What a round pays: handed over to Staking, where it vests, in one call.
    struct Payroll {
        IStaking.Reward[] entries; // the first `count` of them
        uint256 count;
        uint256 total;
    }

    /// @inheritdoc ITaskRounds
    function settle(uint256 taskId, uint256 number) external {
        (Task storage task, Round storage round) = _in(taskId, Phase.Revealing, number);
        if (round.revealed != round.seated) _requireOver(taskId, task);
        _settle(taskId, task);
    }

    function _settle(uint256 taskId, Task storage task) internal {
        uint256 number = task.state.round;
        Round storage round = task.rounds[number];
        uint256 silent = round.seated & ~round.revealed;
        for (uint256 i = 0; silent >> i != 0; ++i) {
            if (silent.has(i)) _slashVoter(taskId, task, i);
        }
        if (round.revealed.count() < task.params.minReveals) {
            return _void(taskId, task, VoidReason.TooFewScores);
        }

        Judgement memory judgement = _judge(task, round, number);
        uint256 harmful = judgement.harmful;
        for (uint256 i = 0; harmful >> i != 0; ++i) {
            if (harmful.has(i)) _slashHospital(taskId, task, i);
        }
        _pay(taskId, task, round, judgement);
        _settled(taskId, task, judgement.medians, judgement.accepted);
    }

    function _judge(Task storage task, Round storage round, uint256 number)
        private
        view
        returns (Judgement memory judgement)
    {
        uint256 viable = round.viableCohorts;
        judgement.medians = new int64[](round.cohorts);
        judgement.gains = new uint256[](task.hospitals.length);
        for (uint256 cohort = 0; viable >> cohort != 0; ++cohort) {
            if (!viable.has(cohort)) continue;
            int64 median = _median(task, number, round.revealed, cohort);
            judgement.medians[cohort] = median;
            uint256 members = task.cohorts[Keys.entry(number, cohort)].members & round.survivors;
            if (median < task.params.harmfulBelow) judgement.harmful |= members;
            if (median < task.params.acceptFloor) continue;
            judgement.accepted = judgement.accepted.with(cohort);
            _addGains(task, judgement, members, median);
        }
    }

    /// @dev By weight and by what the hospital's cohort improved.
    function _addGains(Task storage task, Judgement memory judgement, uint256 members, int64 median) private view {
        for (uint256 i = 0; members >> i != 0; ++i) {
            if (!members.has(i)) continue;
            uint256 gain = Payouts.gain(task.hospitals[i].weight, median);
            judgement.gains[i] = gain;
            judgement.totalGain += gain;
        }
    }

    function _median(Task storage task, uint256 number, uint256 revealed, uint256 cohort) private view returns (int64) {
        int64[] memory scores = new int64[](revealed.count());
        uint256 place;
        for (uint256 i = 0; revealed >> i != 0; ++i) {
            if (revealed.has(i)) scores[place++] = Scores.load(task.scores, number, i, cohort);
        }
        return Medians.lower(scores);
    }

    function _pay(uint256 taskId, Task storage task, Round storage round, Judgement memory judgement) private {
        uint256 left = task.state.poolLeft;
        uint256 budget = Payouts.budget(task.params.pool, task.params.rounds, left);
        Payroll memory payroll;
        payroll.entries = new IStaking.Reward[](task.hospitals.length + task.voters.length + 1);
        _payHospitals(taskId, task, payroll, Payouts.portion(budget, task.params.hospitalShareBps), judgement);
        _payVoters(taskId, task, round, payroll, Payouts.portion(budget, task.params.voterShareBps), judgement.medians);
        _payAggregator(taskId, task, round, payroll, Payouts.portion(budget, task.params.aggregatorShareBps));
        task.state.poolLeft = uint128(left - payroll.total);
        _handOver(payroll);
    }

    function _payHospitals(
        uint256 taskId,
        Task storage task,
        Payroll memory payroll,
        uint256 part,
        Judgement memory judgement
    ) private {
        for (uint256 i = 0; i < judgement.gains.length; ++i) {
            uint256 amount = Payouts.share(part, judgement.gains[i], judgement.totalGain);
            _reward(taskId, task, payroll, task.hospitals[i].node, IStaking.Role.Hospital, amount);
        }
    }

    /// @dev An even part of the seats, so that nobody gains by another voter's going unpaid.
    function _payVoters(
        uint256 taskId,
        Task storage task,
        Round storage round,
        Payroll memory payroll,
        uint256 part,
        int64[] memory medians
    ) private {
        uint256 revealed = round.revealed;
        uint256 amount = Payouts.share(part, 1, round.seated.count());
        for (uint256 i = 0; revealed >> i != 0; ++i) {
            if (!revealed.has(i) || !_isNear(task, round, i, medians)) continue;
            _reward(taskId, task, payroll, task.voters[i].node, IStaking.Role.Voter, amount);
        }
    }

    function _isNear(Task storage task, Round storage round, uint256 voter, int64[] memory medians)
        private
        view
        returns (bool)
    {
        uint256 viable = round.viableCohorts;
        uint256 number = task.state.round;
        TaskParams storage rules = task.params;
        for (uint256 cohort = 0; viable >> cohort != 0; ++cohort) {
            if (!viable.has(cohort)) continue;
            int64 score = Scores.load(task.scores, number, voter, cohort);
            if (!Payouts.isNear(score, medians[cohort], rules.toleranceAbs, rules.toleranceBps)) return false;
        }
        return true;
    }

    /// @dev By how much of what was committed made it into the sums.
    function _payAggregator(
        uint256 taskId,
        Task storage task,
        Round storage round,
        Payroll memory payroll,
        uint256 part
    ) private {
        uint256 amount = Payouts.share(part, _weight(task, round.survivors), _weight(task, round.committed()));
        _reward(taskId, task, payroll, task.params.aggregator, IStaking.Role.Aggregator, amount);
    }

    function _reward(
        uint256 taskId,
        Task storage task,
        Payroll memory payroll,
        address node,
        IStaking.Role role,
        uint256 amount
    ) private {
        if (amount == 0) return;
        // No amount exceeds the pool, which is of the token's supply, which Staking counts in 96 bits.
        payroll.entries[payroll.count++] = IStaking.Reward(node, role, uint96(amount));
        payroll.total += amount;
        emit Rewarded(taskId, task.state.round, node, amount);
    }

    function _handOver(Payroll memory payroll) private {
        if (payroll.count == 0) return;
        (IStaking.Reward[] memory entries, uint256 count) = (payroll.entries, payroll.count);
        assembly ("memory-safe") {
            mstore(entries, count)
        }
        staking.reward(entries);
    }

    function _weight(Task storage task, uint256 members) private view returns (uint256 total) {
        for (uint256 i = 0; members >> i != 0; ++i) {
            if (members.has(i)) total += task.hospitals[i].weight;
        }
    }
}
