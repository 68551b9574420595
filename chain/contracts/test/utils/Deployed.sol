// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../../src/interfaces/IStaking.sol";
import {ITasks} from "../../src/interfaces/ITasks.sol";

/// @notice What the deployed contracts have besides their interfaces. Tests see no more of them than callers do, and
///         so run the very code that ships.
interface IDeployedTasks is ITasks {
    function multicall(bytes[] calldata calls) external returns (bytes[] memory);
}

interface IDeployedStaking is IStaking {
    function setTasks(address tasks) external;
}
