// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {ITaskRegistry} from "../interfaces/ITaskRegistry.sol";
import {TaskRules} from "../libraries/TaskRules.sol";
import {Task} from "../types/Task.sol";
import {TaskBase} from "./TaskBase.sol";

/// @title Proposals of tasks, and the guardian that may stop them.
abstract contract Proposing is TaskBase, ITaskRegistry {
    using SafeERC20 for IERC20;

    /// @inheritdoc ITaskRegistry
    address public immutable guardian;
    address private immutable _code;

    constructor(address guardian_) {
        guardian = guardian_;
        _code = address(this);
    }

    function stopProposals() external {
        if (msg.sender != guardian) revert NotGuardian(msg.sender);
        if (_proposalsStopped) revert ProposalsStopped();
        _proposalsStopped = true;
        emit ProposalsEnded(msg.sender);
    }

    /// @inheritdoc ITaskRegistry
    /// @dev At this code's own address a pool would be lost: nothing else reads the storage there.
    function propose(TaskParams calldata params_) external returns (uint256 taskId) {
        if (address(this) == _code) revert OnlyDelegated();
        if (_proposalsStopped) revert ProposalsStopped();
        TaskRules.validate(params_);
        taskId = _taskCount + 1;
        uint256 shards = params_.shards;
        _taskCount += shards;
        for (uint256 i = 0; i < shards; ++i) {
            _propose(taskId + i, params_, shards == 1 ? 0 : i + 1);
        }
        token.safeTransferFrom(msg.sender, address(this), params_.pool * shards);
    }

    function _propose(uint256 taskId, TaskParams calldata params_, uint256 shard) private {
        Task storage task = _tasks[taskId];
        task.params = params_;
        (task.state.operator, task.state.shard, task.state.poolLeft) = (msg.sender, uint8(shard), params_.pool);
        emit TaskProposed(taskId, msg.sender, params_.specHash, params_.pool);
        _startPhase(taskId, task, Phase.Joining, params_.joinWindow);
    }
}
