// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IBeacon} from "./interfaces/IBeacon.sol";
import {IStaking} from "./interfaces/IStaking.sol";
import {Explaining} from "./phases/Explaining.sol";
import {Disclosing} from "./phases/Disclosing.sol";
import {TaskBase} from "./phases/TaskBase.sol";

/// @title The part of `Tasks` at the end of its rounds: disclosed decoys, rewards and slashes with their reasons.
/// @notice It only has code, which runs in the storage of `Tasks`.
contract TaskSettlement is Disclosing, Explaining {
    constructor(IERC20 token_, IStaking staking_, IBeacon beacon_) TaskBase(token_, staking_, beacon_) {}
}
