// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../interfaces/IStaking.sol";
import {Bits} from "../libraries/Bits.sol";
import {Payouts} from "../libraries/Payouts.sol";
import {TaskRules} from "../libraries/TaskRules.sol";
import {Verdicts} from "../libraries/Verdicts.sol";
import {Round, Task} from "../types/Task.sol";
import {Slashing} from "./Slashing.sol";

/// @title The end of a round in any phase, the start of the next, and the aggregator's grace periods.
/// @notice A void round pays nobody and the task goes on with the next. A task ends after its last round, when its
///         operator stops it, when fewer hospitals are active than one cohort takes, when its statistics round is
///         void, since without statistics nothing can be standardised, or when the beacon is silent for a week.
///
///         Nobody gains if a round does not pay. An even part of the pool is due for each round whose uploads began.
///         Its unpaid rest is burnt in the end, and never goes to later rounds: otherwise a node that keeps others
///         from their pay would share in it later (`docs/economics.md`). Only parts that were due for no round go back
///         to the operator.
abstract contract Concluding is Slashing {
    using Bits for uint256;

    /// @dev Starts a phase of the aggregator. It may overrun the phase by a grace period, which costs it the round's
    ///      fee.
    function _startGracedPhase(uint256 taskId, Task storage task, Phase phase, uint256 window) internal {
        _startPhase(taskId, task, phase, TaskRules.graced(window));
    }

    /// @dev Notes if the aggregator, which ends a phase of this window now, is in its grace period.
    function _noteLate(Task storage task, Round storage round, uint256 window) internal {
        if (block.timestamp > task.state.deadline - TaskRules.grace(window)) round.late = true;
    }

    /// @dev Fixes the result of a round. Its rewards and slashes follow from that.
    /// @param reason the reason for a void round; `None` otherwise.
    function _conclude(uint256 taskId, Task storage task, VoidReason reason) internal {
        uint256 number = task.state.round;
        Round storage round = task.rounds[number];
        round.voidReason = reason;
        if (number == 0) {
            if (reason == VoidReason.None) round.acceptedCohorts = round.publishedCohorts;
        } else if (task.state.phase > Phase.Committing) {
            // A round that fails before uploads was not played: nobody has learnt anything from it.
            round.budget = _forfeit(task);
        }
        _close(taskId, task);
    }

    /// @dev Sets a round's part of the pool aside. The round pays rewards from it, and the rest is burnt.
    function _forfeit(Task storage task) private returns (uint128 part) {
        uint96 forfeited = task.state.forfeited;
        part = uint128(Payouts.roundPart(task.params.pool, task.params.rounds, task.state.poolLeft - forfeited));
        task.state.forfeited = forfeited + uint96(part); // the token's supply fits 96 bits (`Staking`)
    }

    /// @dev Pays and slashes, or leaves that to phase Settling. Calls `_finish` when all is done.
    function _close(uint256 taskId, Task storage task) internal virtual;

    /// @dev Ends a round in which all is paid and slashed.
    function _finish(uint256 taskId, Task storage task) internal {
        uint256 number = task.state.round;
        Round storage round = task.rounds[number];
        VoidReason reason = round.voidReason;
        bool isVoid = reason != VoidReason.None;
        round.outcome = isVoid ? Outcome.Void : Outcome.Settled;
        if (isVoid) emit RoundVoided(taskId, number, reason);
        else emit RoundSettled(taskId, number, round.medians, round.acceptedCohorts);
        bool isLast = isVoid && (number == 0 || reason == VoidReason.NoRandomness);
        if (isLast) _end(taskId, task);
        else _nextRound(taskId, task);
    }

    function _nextRound(uint256 taskId, Task storage task) private {
        // An operator that stops after the statistics round still pays for one round.
        bool isLast = task.state.round == task.params.rounds || (task.state.stopping && task.state.round > 0);
        if (isLast || task.state.activeHospitals.count() < task.params.minCohortSize) return _end(taskId, task);
        bool hasSeed = task.rounds[task.state.round].seatSeed != 0;
        ++task.state.round;
        // The value that drew the last round's seats also assigns these cohorts: it was requested when nobody could
        // change the set of active hospitals any more. A round that ended before its seats were drawn leaves no value.
        // A shard requests one only when the others are done, since the wait for a beacon is bounded.
        if (hasSeed || task.state.shard != 0) _startPhase(taskId, task, Phase.Forming, 0);
        else _awaitBeacon(taskId, task, Phase.Forming);
    }

    /// @dev Concludes a round that the aggregator made void, and slashes it for that.
    function _concludeAtFault(uint256 taskId, Task storage task, VoidReason reason) internal {
        _slash(taskId, task, IStaking.Role.Aggregator, 0, Verdicts.aggregatorUnpaid(reason));
        _conclude(taskId, task, reason);
    }
}
