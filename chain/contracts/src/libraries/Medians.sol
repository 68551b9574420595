// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";

/// @title The lower median: always one of the given values, never an average of two.
library Medians {
    /// @notice The element at index (n - 1) / 2 of the n values in ascending order. There must be at least one value.
    function lower(int64[] memory values) internal pure returns (int64) {
        return _sorted(values)[(values.length - 1) / 2];
    }

    uint256 private constant RUN = 8;

    /// @dev Merge sort from the bottom up, over runs sorted by insertion: it has no expensive worst case that a voter
    ///      could cause. Indices stay below twice the count, so nothing can overflow.
    function _sorted(int64[] memory values) private pure returns (int64[] memory) {
        unchecked {
            uint256 count = values.length;
            for (uint256 start = 0; start < count; start += RUN) {
                _insert(values, start, Math.min(start + RUN, count));
            }
            if (count <= RUN) return values;
            int64[] memory from = values;
            int64[] memory to = new int64[](count);
            for (uint256 width = RUN; width < count; width *= 2) {
                for (uint256 start = 0; start < count; start += 2 * width) {
                    _merge(from, to, start, width);
                }
                (from, to) = (to, from);
            }
            return from;
        }
    }

    /// @dev Sorts the indices from `start` to below `end`, which are within the values.
    function _insert(int64[] memory values, uint256 start, uint256 end) private pure {
        assembly ("memory-safe") {
            let first := add(add(values, 32), shl(5, start))
            let last := add(add(values, 32), shl(5, end))
            for { let next := add(first, 32) } lt(next, last) { next := add(next, 32) } {
                let value := mload(next)
                let slot := next
                for {} gt(slot, first) { slot := sub(slot, 32) } {
                    let before := mload(sub(slot, 32))
                    if iszero(sgt(before, value)) { break }
                    mstore(slot, before)
                }
                mstore(slot, value)
            }
        }
    }

    function _merge(int64[] memory from, int64[] memory to, uint256 start, uint256 width) private pure {
        unchecked {
            uint256 middle = Math.min(start + width, from.length);
            uint256 end = Math.min(middle + width, from.length);
            uint256 left = start;
            uint256 right = middle;
            for (uint256 slot = start; slot < end; ++slot) {
                bool takesLeft = right == end || (left < middle && from[left] <= from[right]);
                to[slot] = takesLeft ? from[left++] : from[right++];
            }
        }
    }
}
