// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";

/// @title The code of tills: addresses that take payments for a model, and hand them to `ModelShares` alone.
contract Till {
    using SafeERC20 for IERC20;

    error OnlyModelShares(address caller);

    IERC20 public immutable token;
    address public immutable modelShares;

    /// @dev `ModelShares` deploys it. Its clones run this code, and so have these two values, too.
    constructor(IERC20 token_) {
        (token, modelShares) = (token_, msg.sender);
    }

    /// @notice Hands over `amount` of tokens.
    function empty(uint256 amount) external {
        if (msg.sender != modelShares) revert OnlyModelShares(msg.sender);
        token.safeTransfer(modelShares, amount);
    }
}
