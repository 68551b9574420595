// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @title KZG commitments to blobs.
library Kzg {
    /// @dev Of a compressed commitment.
    uint256 internal constant POINT_LENGTH = 48;

    /// @notice The hash by which the consensus layer names a blob (EIP-4844).
    function versionedHash(bytes memory commitment) internal pure returns (bytes32) {
        return bytes32((uint256(sha256(commitment)) & (type(uint256).max >> 8)) | (1 << 248));
    }

    /// @notice Writes one point of 48 bytes into a row of them.
    function setPoint(bytes memory points, uint256 index, bytes memory point) internal pure {
        assembly ("memory-safe") {
            mcopy(add(add(points, 32), mul(index, 48)), add(point, 32), 48)
        }
    }
}
