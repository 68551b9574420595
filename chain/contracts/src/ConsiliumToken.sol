// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC20Burnable} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Burnable.sol";
import {ERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";
import {ERC3009} from "@openzeppelin/contracts/token/ERC20/extensions/draft-ERC3009.sol";

/// @title The token of stakes, bonds and rewards.
/// @notice The whole supply exists from the start. It only shrinks, by slashes and burnt pools. A signature
///         can move tokens without gas (ERC-3009), as payments by x402 do.
contract ConsiliumToken is ERC20, ERC20Burnable, ERC20Permit, ERC3009 {
    constructor(uint256 supply, address holder) ERC20("Consilium", "CSL") ERC20Permit("Consilium") {
        _mint(holder, supply);
    }
}
