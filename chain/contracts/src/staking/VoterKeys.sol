// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../interfaces/IStaking.sol";
import {Bls12381} from "../libraries/Bls12381.sol";
import {Tickets} from "../libraries/Tickets.sol";

/// @title Voters' keys, the check of their signatures, and commitments to held-out rows.
abstract contract VoterKeys is IStaking {
    /// @inheritdoc IStaking
    mapping(address voter => bytes32) public voterKeyHash;
    mapping(bytes32 keyHash => address voter) private _voterOf;

    /// @inheritdoc IStaking
    /// @dev The message names the sender, so that nobody can register another's key with a copied proof.
    function registerVoterKey(bytes calldata publicKey, bytes calldata proofOfPossession) external {
        if (publicKey.length != Bls12381.G2_LENGTH) revert VoterKeyMalformed(publicKey.length);
        bytes memory message = abi.encode(block.chainid, address(this), msg.sender, publicKey);
        if (!Tickets.verify(publicKey, proofOfPossession, message, Tickets.POSSESSION_DOMAIN)) {
            revert ProofOfPossessionInvalid(msg.sender);
        }
        bytes32 hash = keccak256(publicKey);
        address voter = _voterOf[hash];
        if (voter != address(0) && voter != msg.sender) revert VoterKeyTaken(msg.sender);
        _voterOf[hash] = msg.sender;
        voterKeyHash[msg.sender] = hash;
        emit VoterKeyRegistered(msg.sender, publicKey);
    }

    /// @inheritdoc IStaking
    /// @dev Only an event: no contract reads it, and auditors of voters read events anyway.
    function commitHeldOut(bytes32 root) external {
        emit HeldOutCommitted(msg.sender, root);
    }

    function verifyTicket(bytes calldata publicKey, bytes calldata ticket, bytes calldata message)
        external
        view
        returns (bool)
    {
        return Tickets.verify(publicKey, ticket, message, Tickets.TICKET_DOMAIN);
    }
}
