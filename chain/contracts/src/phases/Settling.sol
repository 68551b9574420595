// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../interfaces/IStaking.sol";
import {ITaskRegistry} from "../interfaces/ITaskRegistry.sol";
import {Bits} from "../libraries/Bits.sol";
import {Payouts} from "../libraries/Payouts.sol";
import {Verdicts} from "../libraries/Verdicts.sol";
import {Round, Task} from "../types/Task.sol";
import {TaskBase} from "./TaskBase.sol";

/// @title The end of a round: judgement, rewards and slashes.
/// @notice What a round may pay is an even part of the pool. What it does not pay stays in the pool.
abstract contract Settling is TaskBase, ITaskRegistry {
    using Bits for uint256;

    /// @dev What a round pays: handed over to Staking, where it vests, in one call.
    struct Payroll {
        IStaking.Reward[] entries; // the first `count` of them
        uint256 count;
        uint256 total;
    }

    /// @inheritdoc ITaskRegistry
    function settle(uint256 taskId, uint256 number) public {
        Phase phase = _known(taskId).state.phase;
        if (phase != Phase.Opening) phase = Phase.Revealing;
        (Task storage task, Round storage round) = _in(taskId, phase, number);
        if (phase == Phase.Opening) {
            if (!_isSummed(round)) revert CohortsNotOpened(round.summedCohorts, round.viableCohorts);
        } else if (round.revealed != round.seated) {
            _requireOver(taskId, task);
        }
        _settle(taskId, task);
    }

    function _settle(uint256 taskId, Task storage task) internal {
        uint256 number = task.state.round;
        Round storage round = task.rounds[number];
        (uint256 revealed, uint256 mismatched) = (round.revealed.count(), round.mismatched.count());
        bool matches = revealed < task.params.minReveals || 2 * mismatched <= revealed;
        bool enough = revealed - mismatched >= task.params.minReveals;
        if (matches && enough && !_isSummed(round)) {
            return _startPhase(taskId, task, Phase.Opening, task.params.publishWindow);
        }
        _slashSilent(taskId, task, round);
        if (!matches) return _blame(taskId, task, SlashReason.Mismatched, VoidReason.Mismatched);
        if (!enough) return _void(taskId, task, VoidReason.TooFewScores);
        if (round.named != 0) {
            round.guilty = round.named;
            _slashAll(taskId, task, SlashReason.FalseUpload, round.named);
            if (number == 0) return _void(taskId, task, VoidReason.NoSums); // its one cohort has none
        }
        // Of the statistics nothing but that they match was asked.
        if (number == 0) return _settled(taskId, task, new int64[](0), round.publishedCohorts);

        uint256 left = task.state.poolLeft;
        uint256 budget = Payouts.budget(task.params.pool, task.params.rounds, left);
        Verdicts.Verdict memory verdict = Verdicts.judge(task, number, budget);
        _slashAll(taskId, task, SlashReason.HarmfulCohort, verdict.harmful);
        _slashAll(taskId, task, SlashReason.FailedCanary, verdict.failed);
        task.state.poolLeft = uint128(left - _pay(taskId, task, round, verdict));
        round.budget = uint128(budget);
        _settled(taskId, task, verdict.medians, verdict.accepted);
    }

    /// @notice The end of the late phases: `Tasks.tick` comes here with them.
    function tick(uint256 taskId) external {
        Task storage task = _known(taskId);
        _requireOver(taskId, task);
        _payBounty(taskId, task);
        bool isLate = task.state.phase == Phase.Opening && !_isSummed(task.rounds[task.state.round]);
        if (isLate) _notOpened(taskId, task);
        else _settle(taskId, task);
    }

    /// @dev The aggregator let the opening phase pass.
    function _notOpened(uint256 taskId, Task storage task) private {
        _slashSilent(taskId, task, task.rounds[task.state.round]);
        _blame(taskId, task, SlashReason.NotOpened, VoidReason.NotOpened);
    }

    function _slashSilent(uint256 taskId, Task storage task, Round storage round) private {
        _slashAll(taskId, task, SlashReason.NotRevealed, round.seated & ~round.revealed);
    }

    /// @dev Whether every sum is known to be what was published: without canaries since the publication.
    function _isSummed(Round storage round) private view returns (bool) {
        return round.summedCohorts == round.viableCohorts;
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
