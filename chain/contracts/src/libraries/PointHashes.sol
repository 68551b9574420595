// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @title The hashes by which hospitals commit to KZG points before they show them.
/// @notice A hash names its hospital and its blob, so it is of no use to another one, and for no other blob. A blob has
///         random scalars, so its point cannot be guessed from the hash.
library PointHashes {
    bytes32 private constant DOMAIN = keccak256("CONSILIUM-V1-POINT");

    /// @notice The part that all hashes of a round share.
    function context(uint256 taskId, uint256 round) internal view returns (bytes32) {
        return keccak256(abi.encode(DOMAIN, block.chainid, address(this), taskId, round));
    }

    /// @param point compressed, 48 bytes.
    function hashOf(bytes32 context_, address hospital, uint256 blob, bytes memory point)
        internal
        pure
        returns (bytes32)
    {
        return keccak256(abi.encodePacked(context_, hospital, blob, point));
    }
}
