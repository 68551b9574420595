// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @title An ordinary account whose transactions another pays for.
interface ISponsoredAccount {
    struct Call {
        address to;
        bytes data;
    }

    /// @notice Another batch's turn: this one was carried out already, or one before it was not.
    error BatchNonceWrong(uint256 expected, uint256 given);
    /// @notice The batch was to be carried out by then.
    error BatchExpired(uint256 deadline);
    /// @notice The signature is not this account's, on these calls, nonce and deadline, for this chain.
    error BatchSignatureInvalid(address account);

    /// @notice Makes all the calls in the account's name, in order, or none: the first that fails ends it with its own
    ///         error. Anybody may send it.
    /// @param nonce how many batches of this account were carried out before.
    /// @param deadline Unix time in seconds, inclusive.
    /// @param signature the account's own on `batchDigest`, r ‖ s ‖ v, s in the lower half.
    function execute(Call[] calldata calls, uint256 nonce, uint256 deadline, bytes calldata signature) external;

    /// @notice What the account signs (EIP-712): `Batch(Call[] calls,uint256 nonce,uint256 deadline)` in the domain
    ///         "ConsiliumAccount", version "1", of the chain and the account.
    function batchDigest(Call[] calldata calls, uint256 nonce, uint256 deadline) external view returns (bytes32);
}
