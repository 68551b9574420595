// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskRegistry} from "./ITaskRegistry.sol";
import {ITaskRounds} from "./ITaskRounds.sol";
import {ITaskSettlement} from "./ITaskSettlement.sol";

/// @title All calls of tasks: one address, whose code is in three contracts (see `Tasks`).
interface ITasks is ITaskRounds, ITaskRegistry, ITaskSettlement {}
