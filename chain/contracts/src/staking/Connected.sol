// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../interfaces/IStaking.sol";

/// @title The contracts that Staking obeys. They need its address first.
abstract contract Connected is IStaking {
    /// @notice The only contract that may lock, unlock, slash and reward.
    address public tasks;
    /// @notice The only contract that may give.
    address public modelShares;

    address private immutable _deployer;

    constructor() {
        _deployer = msg.sender;
    }

    modifier onlyTasks() {
        if (msg.sender != tasks) revert OnlyTasks(msg.sender);
        _;
    }

    modifier onlyModelShares() {
        if (msg.sender != modelShares) revert OnlyModelShares(msg.sender);
        _;
    }

    /// @notice Sets both contracts. Only the deployer may call, once.
    function connect(address tasks_, address modelShares_) external {
        if (msg.sender != _deployer) revert OnlyDeployer(msg.sender);
        if (tasks != address(0)) revert AlreadyConnected(tasks, modelShares);
        (tasks, modelShares) = (tasks_, modelShares_);
    }
}
