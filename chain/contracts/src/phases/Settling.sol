// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

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
        uint256 paid = _payHospitals(taskId, task, Payouts.portion(budget, task.params.hospitalShareBps), judgement)
            + _payVoters(taskId, task, round, Payouts.portion(budget, task.params.voterShareBps), judgement.medians)
            + _payAggregator(taskId, task, round, Payouts.portion(budget, task.params.aggregatorShareBps));
        task.state.poolLeft = uint128(left - paid);
        _totalClaimable += paid;
    }

    function _payHospitals(uint256 taskId, Task storage task, uint256 part, Judgement memory judgement)
        private
        returns (uint256 paid)
    {
        for (uint256 i = 0; i < judgement.gains.length; ++i) {
            if (judgement.gains[i] == 0) continue;
            uint256 amount = Payouts.share(part, judgement.gains[i], judgement.totalGain);
            paid += amount;
            _reward(taskId, task.state.round, task.hospitals[i].node, amount);
        }
    }

    /// @dev An even part of the seats, so that nobody gains by another voter's going unpaid.
    function _payVoters(uint256 taskId, Task storage task, Round storage round, uint256 part, int64[] memory medians)
        private
        returns (uint256 paid)
    {
        uint256 number = task.state.round;
        uint256 revealed = round.revealed;
        uint256 amount = Payouts.share(part, 1, round.seated.count());
        for (uint256 i = 0; revealed >> i != 0; ++i) {
            if (!revealed.has(i) || !_isNear(task, round, i, medians)) continue;
            paid += amount;
            _reward(taskId, number, task.voters[i].node, amount);
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
    function _payAggregator(uint256 taskId, Task storage task, Round storage round, uint256 part)
        private
        returns (uint256 amount)
    {
        amount = Payouts.share(part, _weight(task, round.survivors), _weight(task, round.committed()));
        _reward(taskId, task.state.round, task.params.aggregator, amount);
    }

    function _weight(Task storage task, uint256 members) private view returns (uint256 total) {
        for (uint256 i = 0; members >> i != 0; ++i) {
            if (members.has(i)) total += task.hospitals[i].weight;
        }
    }
}
