// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../interfaces/IStaking.sol";
import {Bits} from "../libraries/Bits.sol";
import {Payouts} from "../libraries/Payouts.sol";
import {TaskRules} from "../libraries/TaskRules.sol";
import {Verdicts} from "../libraries/Verdicts.sol";
import {Round, Task} from "../types/Task.sol";
import {Slashing} from "./Slashing.sol";

/// @title How a round is concluded, whatever phase it ends in; the passage to the next; slashes; the aggregator's grace.
/// @notice A void round pays nobody and the task goes on with the next. A task ends after its last round, when its
///         operator stops it, when fewer hospitals are active than one cohort takes, when its statistics round is
///         void, since without statistics nothing can be standardised, or when the beacon is silent for a week.
///
///         Nobody gains by a round's not paying: an even part of the pool is due for each round whose uploads began. What
///         such a round does not pay is burnt in the end, and no later round's: or who keeps others from their pay would
///         share in it then (`docs/economics.md`). Only what was due for no round goes back to the operator.
abstract contract Concluding is Slashing {
    using Bits for uint256;

    /// @dev A phase of the aggregator, which it may overrun by a grace period that costs it the round's fee.
    function _startGracedPhase(uint256 taskId, Task storage task, Phase phase, uint256 window) internal {
        _startPhase(taskId, task, phase, TaskRules.graced(window));
    }

    /// @dev The aggregator just ended a phase of this window.
    function _noteLate(Task storage task, Round storage round, uint256 window) internal {
        if (block.timestamp > task.state.deadline - TaskRules.grace(window)) round.late = true;
    }

    /// @dev What the round comes to is known; what it pays and slashes follows from it.
    /// @param reason why the round is void; `None` for one that counts.
    function _conclude(uint256 taskId, Task storage task, VoidReason reason) internal {
        uint256 number = task.state.round;
        Round storage round = task.rounds[number];
        round.voidReason = reason;
        if (number == 0) {
            if (reason == VoidReason.None) round.acceptedCohorts = round.publishedCohorts;
        } else if (task.state.phase > Phase.Committing) {
            // A round that fails before uploads was not played: nobody has learnt anything by it.
            round.budget = _forfeit(task);
        }
        _close(taskId, task);
    }

    /// @dev A round's part of the pool, which is nobody's but for what the round then pays of it.
    function _forfeit(Task storage task) private returns (uint128 part) {
        uint96 forfeited = task.state.forfeited;
        part = uint128(Payouts.roundPart(task.params.pool, task.params.rounds, task.state.poolLeft - forfeited));
        task.state.forfeited = forfeited + uint96(part); // the pool is of the token's supply, which Staking counts in 96 bits
    }

    /// @dev Pays and slashes, or leaves that to phase Settling; where all is done, `_finish`.
    function _close(uint256 taskId, Task storage task) internal virtual;

    /// @dev All is paid and slashed.
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
        // Who stops after the statistics has had them for nothing: one round is paid for.
        bool isLast = task.state.round == task.params.rounds || (task.state.stopping && task.state.round > 0);
        if (isLast || task.state.activeHospitals.count() < task.params.minCohortSize) return _end(taskId, task);
        bool isDealt = task.rounds[task.state.round].seatSeed != 0;
        ++task.state.round;
        // The value that drew the last round's seats deals these cohorts, too: it was asked for when nobody could change
        // any more who is active. A round that ended before its seats were drawn leaves none.
        if (isDealt) _startPhase(taskId, task, Phase.Forming, 0);
        else _awaitBeacon(taskId, task, Phase.Forming);
    }

    /// @dev Concludes a round that the aggregator made void, and slashes it for that.
    function _concludeAtFault(uint256 taskId, Task storage task, VoidReason reason) internal {
        _slash(taskId, task, IStaking.Role.Aggregator, 0, Verdicts.aggregatorUnpaid(reason));
        _conclude(taskId, task, reason);
    }
}
