// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../interfaces/IStaking.sol";
import {ITaskRounds} from "../interfaces/ITaskRounds.sol";
import {Bits} from "../libraries/Bits.sol";
import {Round, Task} from "../types/Task.sol";
import {Concluding} from "./Concluding.sol";

/// @title Whose doing it is that a masked cohort has no sum.
/// @notice Expanding masks is more than a contract can afford. It keeps the time in which hospitals testify, so that
///         nobody can be said to have been silent who was not, and has the committee recompute who is named.
/// @dev The phase has three steps, each as long as the publishing phase: so that nobody answers, by testifying last,
///      what the others have no time to answer in turn.
abstract contract Blaming is Concluding, ITaskRounds {
    using Bits for uint256;

    /// @inheritdoc ITaskRounds
    function testify(uint256 taskId, uint256 number, uint256 step, bytes calldata testimony) external {
        (Task storage task, Round storage round) = _open(taskId, Phase.Blaming, number);
        _member(taskId, task, IStaking.Role.Hospital, round.accused & round.survivors);
        uint256 naming = _naming(task);
        if (block.timestamp >= naming) revert PhaseOver(taskId, uint64(naming));
        uint256 current = block.timestamp < naming - task.params.publishWindow ? 0 : 1;
        if (step != current) revert WrongStep(taskId, current, step);
        emit Testified(taskId, number, msg.sender, step, testimony);
    }

    /// @inheritdoc ITaskRounds
    function nameCulprits(uint256 taskId, uint256 number, uint256 hospitals) external {
        (Task storage task, Round storage round) = _open(taskId, Phase.Blaming, number);
        _requireAggregator(task);
        uint256 naming = _naming(task);
        if (block.timestamp < naming) revert PhaseNotOver(taskId, uint64(naming));
        if (hospitals == 0 || !round.accused.contains(hospitals)) revert CulpritsInvalid(hospitals);
        round.named = hospitals;
        emit CulpritsNamed(taskId, number, hospitals);
        _awaitBeacon(taskId, task, Phase.Drawing);
    }

    /// @dev When the last step begins.
    function _naming(Task storage task) private view returns (uint256) {
        return task.state.deadline - task.params.publishWindow;
    }
}
