// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IBeacon} from "../../src/interfaces/IBeacon.sol";
import {IStaking} from "../../src/interfaces/IStaking.sol";
import {ITaskRounds} from "../../src/interfaces/ITaskRounds.sol";
import {ITasks} from "../../src/interfaces/ITasks.sol";

/// @notice The deployed contracts, with calls besides their interfaces. Tests see them as callers do, and
///         so run the very code that ships.
interface IDeployedTasks is ITasks {
    function multicall(bytes[] calldata calls) external returns (bytes[] memory);
}

interface IDeployedStaking is IStaking {
    function setTasks(address tasks) external;
}

interface IDeployedDrandBeacon is IBeacon {
    error ScheduleInvalid(uint256 period, uint256 lookahead);
    error KeyInvalid();

    function genesis() external view returns (uint256);
    function period() external view returns (uint256);
    function lookahead() external view returns (uint256);
    function publicKey() external view returns (bytes memory);
}
