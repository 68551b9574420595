// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @title An ordinary account for whose transactions another account pays.
interface ISponsoredAccount {
    struct Call {
        address to;
        bytes data;
    }

    /// @notice The batch was carried out already, or an earlier one was not.
    error BatchNonceWrong(uint256 expected, uint256 given);
    /// @notice The deadline of the batch has passed. Sign a new batch.
    error BatchExpired(uint256 deadline);
    /// @notice This account did not sign these calls, nonce and deadline for this chain.
    error BatchSignatureInvalid(address account);

    /// @notice Makes all calls in the account's name and in order, or none: the first that fails reverts the batch with
    ///         its own error. Anybody may send a batch.
    /// @param nonce number of batches that this account carried out before.
    /// @param deadline Unix time in seconds, inclusive.
    /// @param signature the account's signature on `batchDigest`, r ‖ s ‖ v, s in the lower half.
    function execute(Call[] calldata calls, uint256 nonce, uint256 deadline, bytes calldata signature) external;

    /// @notice The digest that the account signs (EIP-712): `Batch(Call[] calls,uint256 nonce,uint256 deadline)` in the
    ///         domain "ConsiliumAccount", version "1", of the chain and the account.
    function batchDigest(Call[] calldata calls, uint256 nonce, uint256 deadline) external view returns (bytes32);
}
