// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Bls12381} from "./Bls12381.sol";

/// @title KZG commitments to blobs, and KZG proofs of values at a challenge.
library Kzg {
    /// @dev Order of the scalar field.
    uint256 internal constant MODULUS = Bls12381.ORDER;
    uint256 internal constant POINT_LENGTH = 48;

    bytes32 private constant DOMAIN = keccak256("CONSILIUM-V1-OPENING");
    uint256 private constant POINT_EVALUATION = 0x0a;
    /// @dev A refused proof burns the forwarded gas, so this is the exact cost.
    uint256 private constant POINT_EVALUATION_GAS = 50_000;
    bytes1 private constant INFINITY_FLAG = 0x40;

    /// @notice The hash by which the consensus layer names a blob (EIP-4844).
    function versionedHash(bytes memory commitment) internal pure returns (bytes32) {
        return bytes32((uint256(sha256(commitment)) & (type(uint256).max >> 8)) | (1 << 248));
    }

    /// @notice True for 48 bytes without the flag of infinity. The KZG proof checks curve and subgroup.
    function isPoint(bytes memory commitment) internal pure returns (bool) {
        return commitment.length == POINT_LENGTH && commitment[0] & INFINITY_FLAG == 0;
    }

    /// @notice Writes one point of 48 bytes into a row of them.
    function setPoint(bytes memory points, uint256 index, bytes memory point) internal pure {
        assembly ("memory-safe") {
            mcopy(add(add(points, 32), mul(index, 48)), add(point, 32), 48)
        }
    }

    /// @notice The challenge of a hospital's KZG proof: the ratio that combines its commitments, and the point at which
    ///         the combination is evaluated. Both are bound to chain, contract, task, round, sender and all points. So
    ///         a proof shows that its sender knows the committed values in this round.
    /// @param points compressed, 48 bytes each.
    function challenge(uint256 taskId, uint256 round, address hospital, bytes memory points)
        internal
        view
        returns (uint256 ratio, uint256 point)
    {
        bytes32 transcript =
            keccak256(abi.encode(DOMAIN, block.chainid, address(this), taskId, round, hospital, keccak256(points)));
        ratio = uint256(transcript) % MODULUS;
        point = uint256(keccak256(abi.encode(transcript))) % MODULUS;
    }

    /// @notice True if `proof` shows that the polynomial behind `commitment` takes `value` at `point`.
    function verifyProof(bytes memory commitment, uint256 point, bytes32 value, bytes calldata proof)
        internal
        view
        returns (bool ok)
    {
        // A proof of another length makes an input of another length, which the precompile refuses.
        bytes memory input = bytes.concat(versionedHash(commitment), bytes32(point), value, commitment, proof);
        assembly ("memory-safe") {
            ok := staticcall(POINT_EVALUATION_GAS, POINT_EVALUATION, add(input, 32), mload(input), 0, 64)
            ok := and(ok, eq(returndatasize(), 64))
        }
    }
}
