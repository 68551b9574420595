// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IBeacon} from "../../src/interfaces/IBeacon.sol";
import {IERC1155} from "@openzeppelin/contracts/token/ERC1155/IERC1155.sol";
import {IChannels} from "../../src/interfaces/IChannels.sol";
import {IEnsembles} from "../../src/interfaces/IEnsembles.sol";
import {IModelShares} from "../../src/interfaces/IModelShares.sol";
import {IStaking} from "../../src/interfaces/IStaking.sol";
import {ITaskRounds} from "../../src/interfaces/ITaskRounds.sol";
import {ITasks} from "../../src/interfaces/ITasks.sol";

/// @notice The deployed contracts, with calls besides their interfaces. Tests see them as callers do, and
///         so run the very code that ships.
interface IDeployedTasks is ITasks {
    function multicall(bytes[] calldata calls) external returns (bytes[] memory);
}

interface IDeployedStaking is IStaking {
    function connect(address tasks, address modelShares) external;
    function modelShares() external view returns (address);
}

interface IDeployedModelShares is IModelShares, IChannels, IEnsembles, IERC1155 {}

interface IDeployedDrandBeacon is IBeacon {
    error ScheduleInvalid(uint256 period, uint256 lookahead);
    error KeyInvalid();

    function genesis() external view returns (uint256);
    function period() external view returns (uint256);
    function lookahead() external view returns (uint256);
    function publicKey() external view returns (bytes memory);
}
