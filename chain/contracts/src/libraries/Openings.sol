// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskTypes} from "../interfaces/ITaskTypes.sol";
import {Bls12381, G1} from "./Bls12381.sol";

/// @notice The challenge (`Kzg.challenge`) that one update of a batch answers.
struct Claim {
    uint256 update; // its index in the batch
    uint256 ratio;
    uint256 point;
}

/// @title Many KZG proofs in one pairing check.
/// @notice The batch verification of EIP-4844's consensus specification (`verify_kzg_proof_batch`): with C_i the
///         combination of an update's points by powers of its ratio, and P_i the proof of its value y_i at z_i,
///
///             e(sum of r^i (C_i - y_i G1 + z_i P_i), G2) = e(sum of r^i P_i, tau G2).
///
///         A wrong proof leaves an error in the exponent. The sum of errors by powers of r is zero for fewer than n
///         values of r, where n is the number of proofs. r is a hash of all of them, so nobody can choose it.
library Openings {
    bytes32 private constant DOMAIN = keccak256("CONSILIUM-V1-BATCH");

    /// @dev tau times the generator of G2, from Ethereum's ceremony: the second of `g2_monomial` in
    ///      `trusted_setup.txt`.
    bytes private constant TAU_G2 =
        hex"00000000000000000000000000000000185cbfee53492714734429b7b38608e23926c911cceceac9a36851477ba4c60b087041de621000edc98edada20c1def20000000000000000000000000000000015bfd7dd8cdeb128843bc287230af38926187075cbfbefa81009a2ce615ac53d2914e5870cb452d2afaaab24f3499f7200000000000000000000000000000000014353bdb96b626dd7d5ee8599d1fca2131569490e28de18e82451a496a9c9794ce26d105941f383ee689bfbbb832a99000000000000000000000000000000001666c54b0a32529503432fcae0181b4bef79de09fc63671fda5ed1ba9bfa07899495346f3d7ac9cd23048ef30d0a154f";

    /// @notice True if every claim's proof is right. False if a point or a proof is outside the group.
    /// @param claims at least one.
    function hold(ITaskTypes.SignedUpdate[] calldata updates, Claim[] memory claims) internal view returns (bool) {
        (bytes memory terms, bytes memory proofs) = _terms(updates, claims);
        (bool areIn, G1 memory left) = Bls12381.tryWeightedSum(terms);
        if (!areIn) return false;
        // The proofs are among the terms, so they are in the group.
        return Bls12381.signs(left, Bls12381.weightedSum(proofs), TAU_G2);
    }

    /// @notice The ratio r that weighs the proofs: a hash of all inputs of the check. A claim's ratio and point are
    ///         hashes of the update's points.
    function weightRatio(ITaskTypes.SignedUpdate[] calldata updates, Claim[] memory claims)
        internal
        pure
        returns (uint256)
    {
        bytes32 transcript = keccak256(abi.encode(DOMAIN, claims.length));
        for (uint256 i = 0; i < claims.length; ++i) {
            ITaskTypes.SignedUpdate calldata update = updates[claims[i].update];
            transcript = keccak256(abi.encode(transcript, claims[i].ratio, claims[i].point, update.value, update.proof));
        }
        return uint256(transcript) % Bls12381.ORDER;
    }

    /// @dev The terms of both sides of the equation.
    function _terms(ITaskTypes.SignedUpdate[] calldata updates, Claim[] memory claims)
        private
        pure
        returns (bytes memory terms, bytes memory proofs)
    {
        uint256 blobs = updates[claims[0].update].points.length / Bls12381.G1_LENGTH;
        terms = new bytes((claims.length * (blobs + 1) + 1) * Bls12381.TERM_LENGTH);
        proofs = new bytes(claims.length * Bls12381.TERM_LENGTH);
        uint256 ratio = weightRatio(updates, claims);
        uint256 weight = 1;
        uint256 value;
        uint256 next;
        for (uint256 i = 0; i < claims.length; ++i) {
            ITaskTypes.SignedUpdate calldata update = updates[claims[i].update];
            next = _setPoints(terms, next, update.points, weight, claims[i].ratio);
            G1 memory proof = update.proof;
            Bls12381.setTerm(terms, next++, proof, mulmod(weight, claims[i].point, Bls12381.ORDER));
            Bls12381.setTerm(proofs, i, proof, weight);
            value = addmod(value, mulmod(weight, uint256(update.value), Bls12381.ORDER), Bls12381.ORDER);
            weight = mulmod(weight, ratio, Bls12381.ORDER);
        }
        Bls12381.setTerm(terms, next, Bls12381.generator(), Bls12381.ORDER - value);
    }

    /// @dev The points times `weight` times powers of `ratio`.
    function _setPoints(bytes memory terms, uint256 next, bytes calldata points, uint256 weight, uint256 ratio)
        private
        pure
        returns (uint256)
    {
        for (uint256 start = 0; start < points.length; start += Bls12381.G1_LENGTH) {
            Bls12381.setTerm(terms, next++, Bls12381.pointAt(points, start / Bls12381.G1_LENGTH), weight);
            weight = mulmod(weight, ratio, Bls12381.ORDER);
        }
        return next;
    }
}
