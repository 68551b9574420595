// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @title KZG commitments to blobs, and openings of them at a challenge.
library Kzg {
    /// @dev Order of the scalar field.
    uint256 internal constant MODULUS = 0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001;
    uint256 internal constant POINT_LENGTH = 48;

    bytes32 private constant DOMAIN = keccak256("CONSILIUM-V1-OPENING");
    uint256 private constant POINT_EVALUATION = 0x0a;
    /// @dev Forwarding exactly the cost bounds what a refused opening burns.
    uint256 private constant POINT_EVALUATION_GAS = 50_000;
    bytes1 private constant INFINITY_FLAG = 0x40;

    /// @notice The hash by which the consensus layer names a blob.
    function versionedHash(bytes memory commitment) internal pure returns (bytes32) {
        return bytes32((uint256(sha256(commitment)) & (type(uint256).max >> 8)) | (1 << 248));
    }

    /// @notice True for 48 bytes that do not claim to be the point at infinity. The subgroup is checked by the opening.
    function isPoint(bytes calldata commitment) internal pure returns (bool) {
        return commitment.length == POINT_LENGTH && commitment[0] & INFINITY_FLAG == 0;
    }

    /// @notice Writes one point of 48 bytes into a row of them.
    function setPoint(bytes memory points, uint256 index, bytes calldata point) internal pure {
        assembly ("memory-safe") {
            calldatacopy(add(add(points, 32), mul(index, 48)), point.offset, 48)
        }
    }

    /// @notice Where a hospital must open its commitment. Bound to chain, contract, task, round, sender, blob and
    ///         commitment, so that an opening proves that its sender, now, knows what is committed to.
    function challenge(uint256 taskId, uint256 round, address hospital, uint256 blob, bytes32 hash)
        internal
        view
        returns (uint256)
    {
        return uint256(keccak256(abi.encode(DOMAIN, block.chainid, address(this), taskId, round, hospital, blob, hash)))
            % MODULUS;
    }

    /// @notice True if `proof` shows that the polynomial behind `commitment` takes `value` at `point`.
    function verifyOpening(bytes32 hash, uint256 point, bytes32 value, bytes calldata commitment, bytes calldata proof)
        internal
        view
        returns (bool ok)
    {
        bytes memory input = bytes.concat(hash, bytes32(point), value, commitment, proof);
        assembly ("memory-safe") {
            ok := staticcall(POINT_EVALUATION_GAS, POINT_EVALUATION, add(input, 32), mload(input), 0, 64)
            ok := and(ok, eq(returndatasize(), 64))
        }
    }
}
