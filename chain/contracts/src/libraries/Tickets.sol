// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {Bls12381, G1} from "./Bls12381.sol";

/// @title Voters' BLS signatures (in G1, keys in G2): tickets for seats, and proofs of possession of keys.
/// @notice A signature is a function of key and message alone, so a voter has one ticket per seed and cannot try again.
library Tickets {
    bytes internal constant TICKET_DOMAIN = "CONSILIUM-V1-TICKET_BLS12381G1_XMD:SHA-256_SSWU_RO_";
    bytes internal constant POSSESSION_DOMAIN = "CONSILIUM-V1-POP_BLS12381G1_XMD:SHA-256_SSWU_RO_";

    /// @notice True if `signature` is the key's signature on `signed`; never for an identity key or signature.
    function verify(bytes calldata publicKey, bytes calldata signature, bytes memory signed, bytes memory domain)
        internal
        view
        returns (bool)
    {
        if (publicKey.length != Bls12381.G2_LENGTH || signature.length != Bls12381.G1_LENGTH) return false;
        if (keccak256(publicKey) == keccak256(new bytes(Bls12381.G2_LENGTH))) return false;
        G1 memory point = abi.decode(signature, (G1));
        if (Bls12381.isIdentity(point)) return false;
        return Bls12381.signs(point, Bls12381.hashToG1(signed, domain), publicKey);
    }

    /// @notice The message of a voter's ticket. It names the account, so that accounts draw independently, whatever
    ///         their keys.
    function message(uint256 taskId, uint256 round, bytes32 seed, address voter) internal view returns (bytes memory) {
        return abi.encode(block.chainid, address(this), taskId, round, seed, voter);
    }

    /// @notice The draw of a ticket: uniform, and known only to the voter before it shows the ticket.
    function draw(bytes calldata ticket) internal pure returns (uint256) {
        return uint256(keccak256(ticket));
    }

    /// @notice The limit of winning draws: below it a voter with `bond` of `weight` wins one of `seats` expected seats.
    function threshold(uint256 seats, uint256 bond, uint256 weight) internal pure returns (uint256) {
        uint256 share = seats * bond;
        return share >= weight ? type(uint256).max : Math.mulDiv(type(uint256).max, share, weight);
    }
}
