// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";

/// @title Arithmetic of rewards and slashes. Everything rounds down, so parts never exceed the whole.
library Payouts {
    uint256 internal constant BASIS_POINTS = 10_000;

    function portion(uint256 amount, uint256 basisPoints) internal pure returns (uint256) {
        return amount * basisPoints / BASIS_POINTS;
    }

    /// @notice A slash of `basisPoints` of `bond`, at most `most`.
    function penalty(uint256 bond, uint256 basisPoints, uint256 most) internal pure returns (uint256) {
        return Math.min(portion(bond, basisPoints), most);
    }

    /// @notice The part of the pool that a played round may pay: an even one.
    function roundPart(uint256 pool, uint256 rounds, uint256 left) internal pure returns (uint256) {
        return Math.min(pool / rounds, left);
    }

    /// @notice The payout curve: a hospital's claim, by its weight and its cohort's median score. To change the curve,
    ///         change this line, and `gain` in `consilium_chain.settlement.payouts`.
    function gain(uint256 weight, int64 median) internal pure returns (uint256) {
        return median > 0 ? weight * uint256(int256(median)) : 0;
    }

    /// @notice `amount` times `part` of `whole`; nothing of nothing.
    function share(uint256 amount, uint256 part, uint256 whole) internal pure returns (uint256) {
        return whole == 0 ? 0 : amount * part / whole;
    }

    /// @notice True if |score - median| <= toleranceAbs + |median| * toleranceBps / 10,000.
    function isNear(int64 score, int64 median, uint256 toleranceAbs, uint256 toleranceBps)
        internal
        pure
        returns (bool)
    {
        return _distance(score, median) <= toleranceAbs + portion(_distance(median, 0), toleranceBps);
    }

    /// @dev The distance of any two 64-bit numbers fits 256 bits.
    function _distance(int256 a, int256 b) private pure returns (uint256) {
        return uint256(a > b ? a - b : b - a);
    }
}
