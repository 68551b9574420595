// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../interfaces/IStaking.sol";
import {ITaskRounds} from "../interfaces/ITaskRounds.sol";
import {Bits} from "../libraries/Bits.sol";
import {Medians} from "../libraries/Medians.sol";
import {Payouts} from "../libraries/Payouts.sol";
import {Scores} from "../libraries/Scores.sol";
import {Verdicts} from "../libraries/Verdicts.sol";
import {Round, Task} from "../types/Task.sol";
import {TaskBase} from "./TaskBase.sol";

/// @title The end of a round: judgement, rewards and slashes.
/// @notice What a round may pay is an even part of the pool. What it does not pay stays in the pool.
abstract contract Settling is TaskBase, ITaskRounds {
    using Bits for uint256;

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
            if (silent.has(i)) _slash(taskId, task, SlashReason.NotRevealed, i);
        }
        if (round.revealed.count() < task.params.minReveals) {
            return _void(taskId, task, VoidReason.TooFewScores);
        }

        uint256 left = task.state.poolLeft;
        uint256 budget = Payouts.budget(task.params.pool, task.params.rounds, left);
        Verdicts.Verdict memory verdict = Verdicts.judge(task, number, _medians(task, round, number), budget);
        uint256 harmful = verdict.harmful;
        for (uint256 i = 0; harmful >> i != 0; ++i) {
            if (harmful.has(i)) _slash(taskId, task, SlashReason.HarmfulCohort, i);
        }
        task.state.poolLeft = uint128(left - _pay(taskId, task, round, verdict));
        round.budget = uint128(budget);
        _settled(taskId, task, verdict.medians, verdict.accepted);
    }

    function _medians(Task storage task, Round storage round, uint256 number)
        private
        view
        returns (int64[] memory medians)
    {
        (uint256 viable, uint256 revealed) = (round.viableCohorts, round.revealed);
        medians = new int64[](round.cohorts);
        for (uint256 cohort = 0; viable >> cohort != 0; ++cohort) {
            if (viable.has(cohort)) medians[cohort] = _median(task, number, revealed, cohort);
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

    function _pay(uint256 taskId, Task storage task, Round storage round, Verdicts.Verdict memory verdict)
        private
        returns (uint256)
    {
        Payroll memory payroll;
        payroll.entries = new IStaking.Reward[](task.hospitals.length + task.voters.length + 1);
        uint256 survivors = round.survivors;
        for (uint256 i = 0; survivors >> i != 0; ++i) {
            if (!survivors.has(i)) continue;
            _reward(taskId, payroll, verdict.number, task.hospitals[i].node, Verdicts.ofHospital(task, verdict, i));
        }
        uint256 revealed = round.revealed;
        for (uint256 i = 0; revealed >> i != 0; ++i) {
            if (!revealed.has(i)) continue;
            _reward(taskId, payroll, verdict.number, task.voters[i].node, Verdicts.ofVoter(task, verdict, i));
        }
        _reward(taskId, payroll, verdict.number, task.params.aggregator, Verdicts.ofAggregator(task, verdict));
        _handOver(payroll);
        return payroll.total;
    }

    function _reward(uint256 taskId, Payroll memory payroll, uint256 number, address node, Payout memory payout)
        private
    {
        if (payout.reward == 0) return;
        // No amount exceeds the pool, which is of the token's supply, which Staking counts in 96 bits.
        payroll.entries[payroll.count++] = IStaking.Reward(node, payout.role, uint96(payout.reward));
        payroll.total += payout.reward;
        emit Rewarded(taskId, number, node, payout.reward);
    }

    function _handOver(Payroll memory payroll) private {
        if (payroll.count == 0) return;
        (IStaking.Reward[] memory entries, uint256 count) = (payroll.entries, payroll.count);
        assembly ("memory-safe") {
            mstore(entries, count)
        }
        staking.reward(entries);
    }
}
