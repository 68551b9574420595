// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {Address} from "@openzeppelin/contracts/utils/Address.sol";
import {StorageSlot} from "@openzeppelin/contracts/utils/StorageSlot.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {ISponsoredAccount} from "./interfaces/ISponsoredAccount.sol";

/// @title Code for ordinary accounts that hold no ether (EIP-7702).
/// @notice An account points to this code by one signed authorization. From then on anybody may carry out the batches
///         that it signs, and pay for them. Contracts see the account as the sender of these calls. It stays an
///         ordinary account: its key sends transactions as before, it receives ether, and its signatures count as its
///         own.
/// @dev The code does nothing without the account's signature, and needs no initialisation. So the first caller of an
///      account that was just pointed here has no advantage.
contract SponsoredAccount is ISponsoredAccount, IERC1271, EIP712 {
    bytes32 private constant CALL_TYPE = keccak256("Call(address to,bytes data)");
    bytes32 private constant BATCH_TYPE =
        keccak256("Batch(Call[] calls,uint256 nonce,uint256 deadline)Call(address to,bytes data)");
    /// @dev A slot by ERC-7201: the account keeps its storage when it points to other code.
    bytes32 private constant NONCE_SLOT =
        keccak256(abi.encode(uint256(keccak256("consilium.SponsoredAccount.nonce")) - 1)) & ~bytes32(uint256(0xff));

    constructor() EIP712("ConsiliumAccount", "1") {}

    receive() external payable {}

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

    function batchDigest(Call[] calldata calls, uint256 nonce, uint256 deadline) public view returns (bytes32) {
        bytes32[] memory hashes = new bytes32[](calls.length);
        for (uint256 i = 0; i < calls.length; ++i) {
            hashes[i] = keccak256(abi.encode(CALL_TYPE, calls[i].to, keccak256(calls[i].data)));
        }
        bytes32 all = keccak256(abi.encodePacked(hashes));
        return _hashTypedDataV4(keccak256(abi.encode(BATCH_TYPE, all, nonce, deadline)));
    }

    /// @inheritdoc IERC1271
    /// @dev For contracts that ask accounts with code: the answer is the same as for an account without.
    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
        return _isMine(hash, signature) ? IERC1271.isValidSignature.selector : bytes4(0xffffffff);
    }

    function _isMine(bytes32 digest, bytes calldata signature) private view returns (bool) {
        (address signer, ECDSA.RecoverError failure,) = ECDSA.tryRecoverCalldata(digest, signature);
        return failure == ECDSA.RecoverError.NoError && signer == address(this);
    }
}
