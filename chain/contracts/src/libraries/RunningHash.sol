// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @title The running hash of a cohort's commitments to one blob, in the order in which they arrived.
/// @notice It starts at zero. One slot stands for all commitments of a cohort: only the same commitments of the same
///         hospitals in the same order give the same hash.
library RunningHash {
    /// @param index of the hospital that sent the commitment: its point hash may name another one.
    /// @param pointHash the commitment (`PointHashes`).
    /// @return next the hash behind this commitment.
    function extend(bytes32 hash, uint256 index, bytes32 pointHash) internal pure returns (bytes32 next) {
        // Written behind allocated memory: `abi.encode` would allocate more for each of thousands of commitments.
        assembly ("memory-safe") {
            let free := mload(0x40)
            mstore(free, hash)
            mstore(add(free, 32), index)
            mstore(add(free, 64), pointHash)
            next := keccak256(free, 96)
        }
    }
}
