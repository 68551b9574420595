// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {Address} from "@openzeppelin/contracts/utils/Address.sol";
import {StorageSlot} from "@openzeppelin/contracts/utils/StorageSlot.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {ISponsoredAccount} from "./interfaces/ISponsoredAccount.sol";

/// @title Code for ordinary accounts that hold no ether (EIP-7702).
/// @notice An account points to this code by one signed authorization, and from then on anybody may carry out, and pay for,
///         what it signs. Its calls are its own: contracts see the account as their sender. It stays an ordinary account
///         besides: its key sends transactions as before, it receives ether, and its signatures count as its own.
/// @dev Without the account's signature nothing is done, whoever calls, so it is no matter who first calls an account
///      that has just been pointed here: there is nothing to initialise.
contract SponsoredAccount is ISponsoredAccount, IERC1271, EIP712 {
    bytes32 private constant CALL_TYPE = keccak256("Call(address to,bytes data)");
    bytes32 private constant BATCH_TYPE =
        keccak256("Batch(Call[] calls,uint256 nonce,uint256 deadline)Call(address to,bytes data)");
    /// @dev Of ERC-7201: storage is the account's, and remains when it points to other code.
    bytes32 private constant NONCE_SLOT =
        keccak256(abi.encode(uint256(keccak256("consilium.SponsoredAccount.nonce")) - 1)) & ~bytes32(uint256(0xff));

    constructor() EIP712("ConsiliumAccount", "1") {}

    receive() external payable {}

    /// @inheritdoc ISponsoredAccount
    function execute(Call[] calldata calls, uint256 nonce, uint256 deadline, bytes calldata signature) external {
        StorageSlot.Uint256Slot storage done = StorageSlot.getUint256Slot(NONCE_SLOT);
        if (nonce != done.value) revert BatchNonceWrong(done.value, nonce);
        if (block.timestamp > deadline) revert BatchExpired(deadline);
        if (!_isMine(batchDigest(calls, nonce, deadline), signature)) revert BatchSignatureInvalid(address(this));
        done.value = nonce + 1;
        for (uint256 i = 0; i < calls.length; ++i) {
            Address.functionCall(calls[i].to, calls[i].data);
        }
    }

    /// @inheritdoc ISponsoredAccount
    function batchDigest(Call[] calldata calls, uint256 nonce, uint256 deadline) public view returns (bytes32) {
        bytes32[] memory hashes = new bytes32[](calls.length);
        for (uint256 i = 0; i < calls.length; ++i) {
            hashes[i] = keccak256(abi.encode(CALL_TYPE, calls[i].to, keccak256(calls[i].data)));
        }
        bytes32 all = keccak256(abi.encodePacked(hashes));
        return _hashTypedDataV4(keccak256(abi.encode(BATCH_TYPE, all, nonce, deadline)));
    }

    /// @inheritdoc IERC1271
    /// @dev For contracts that ask an account with code: the answer is what they would find for one without.
    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
        return _isMine(hash, signature) ? IERC1271.isValidSignature.selector : bytes4(0xffffffff);
    }

    function _isMine(bytes32 digest, bytes calldata signature) private view returns (bool) {
        (address signer, ECDSA.RecoverError failure,) = ECDSA.tryRecoverCalldata(digest, signature);
        return failure == ECDSA.RecoverError.NoError && signer == address(this);
    }
}
