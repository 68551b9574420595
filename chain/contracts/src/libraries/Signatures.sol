// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";

/// @title The signature by which another account may commit for a hospital (EIP-712).
/// @dev It needs no nonce: a hospital commits once a round, so a signature on chain, contract, task and round works
///      only once. It needs no expiry: the phase has one.
library Signatures {
    bytes32 private constant DOMAIN_TYPE =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 private constant NAME = keccak256("Consilium");
    bytes32 private constant VERSION = keccak256("1");
    bytes32 private constant COMMITMENT_TYPE =
        keccak256("UpdateCommitment(uint256 taskId,uint256 round,bytes32[] pointHashes,bytes32 dealing,bytes32 base)");

    /// @notice The digest that the hospital signs.
    /// @param pointHashes one per blob.
    /// @param shareBundle keccak256 of the secret shares; 0 for none.
    /// @param base the digest of the model that the hospital trained from.
    function digest(uint256 taskId, uint256 round, bytes32[] calldata pointHashes, bytes32 shareBundle, bytes32 base)
        internal
        view
        returns (bytes32)
    {
        // Computed anew each time: the code may run on a fork with another chain id.
        bytes32 domain = keccak256(abi.encode(DOMAIN_TYPE, NAME, VERSION, block.chainid, address(this)));
        bytes32 hashes = keccak256(abi.encodePacked(pointHashes));
        bytes32 message = keccak256(abi.encode(COMMITMENT_TYPE, taskId, round, hashes, shareBundle, base));
        return MessageHashUtils.toTypedDataHash(domain, message);
    }

    /// @notice True if the account's key made this signature, in canonical form (s in the lower half).
    /// @dev Contracts cannot sign (ERC-1271): their consent can change between the simulation of a batch and its
    ///      transaction, and then one hospital could make the others' commitments fail.
    function isBy(address account, bytes32 digest_, bytes32 r, bytes32 vs) internal pure returns (bool) {
        (address signer, ECDSA.RecoverError failure,) = ECDSA.tryRecover(digest_, r, vs);
        return failure == ECDSA.RecoverError.NoError && signer == account;
    }
}
