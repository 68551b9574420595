// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @title Sets of indices below 256 as bit maps.
library Bits {
    function has(uint256 map, uint256 index) internal pure returns (bool) {
        return map >> index & 1 == 1;
    }

    function with(uint256 map, uint256 index) internal pure returns (uint256) {
        return map | 1 << index;
    }

    function without(uint256 map, uint256 index) internal pure returns (uint256) {
        return map & ~(1 << index);
    }

    /// @notice All indices below `size`.
    function below(uint256 size) internal pure returns (uint256) {
        return size >= 256 ? type(uint256).max : (1 << size) - 1;
    }

    /// @notice True if everything in `part` is in `map`.
    function contains(uint256 map, uint256 part) internal pure returns (bool) {
        return part & ~map == 0;
    }

    /// @notice The number of indices in the set. Adjacent fields of bits are added up in parallel.
    function count(uint256 map) internal pure returns (uint256) {
        if (map == type(uint256).max) return 256;
        unchecked {
            map -= map >> 1 & type(uint256).max / 3;
            map = (map & type(uint256).max / 5) + (map >> 2 & type(uint256).max / 5);
            map = map + (map >> 4) & type(uint256).max / 17;
            return map * (type(uint256).max / 255) >> 248;
        }
    }
}
