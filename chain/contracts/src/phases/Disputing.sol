// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../interfaces/IStaking.sol";
import {ITaskRounds} from "../interfaces/ITaskRounds.sol";
import {Bits} from "../libraries/Bits.sol";
import {Round, Task} from "../types/Task.sol";
import {Concluding} from "./Concluding.sol";

/// @title The dispute over a masked cohort without a sum: the hospitals submit evidence, and the aggregator names cheaters.
/// @notice A contract cannot afford to expand masks. It records the time of each evidence, so that nobody can claim
///         that a hospital was silent when it was not. The committee recomputes the list of cheaters.
/// @dev The phase has three steps, each as long as the publishing phase, so that the last to submit evidence leaves the others
///      time to answer.
abstract contract Disputing is Concluding, ITaskRounds {
    using Bits for uint256;

    /// @inheritdoc ITaskRounds
    function submitEvidence(uint256 taskId, uint256 number, uint256 step, bytes calldata evidence) external {
        (Task storage task, Round storage round) = _open(taskId, Phase.Disputing, number);
        _member(taskId, task, msg.sender, IStaking.Role.Hospital, round.accused & round.survivors);
        uint256 naming = _namingStart(task);
        if (block.timestamp >= naming) revert PhaseOver(taskId, uint64(naming));
        uint256 current = block.timestamp < naming - task.params.publishWindow ? 0 : 1;
        if (step != current) revert WrongStep(taskId, current, step);
        emit EvidenceSubmitted(taskId, number, msg.sender, step, evidence);
    }

    /// @inheritdoc ITaskRounds
    function nameCheaters(uint256 taskId, uint256 number, uint256 hospitals) external {
        (Task storage task, Round storage round) = _open(taskId, Phase.Disputing, number);
        _requireAggregator(task);
        uint256 naming = _namingStart(task);
        if (block.timestamp < naming) revert PhaseNotOver(taskId, uint64(naming));
        if (hospitals == 0 || !round.accused.contains(hospitals)) revert CheatersInvalid(hospitals);
        round.named = hospitals;
        emit CheatersNamed(taskId, number, hospitals);
        _awaitBeacon(taskId, task, Phase.Drawing);
    }

    /// @dev The start of the last step.
    function _namingStart(Task storage task) private view returns (uint256) {
        return task.state.deadline - task.params.publishWindow;
    }
}
