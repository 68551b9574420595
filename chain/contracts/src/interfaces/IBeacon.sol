// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @title A source of public randomness that nobody can know when it is requested.
/// @notice It has no state: a request is a point in the future, and a seed is a function of that point alone. So the
///         sender of the proof cannot change the seed, nor can the time at which it is sent.
interface IBeacon {
    /// @notice The source has not produced the value for `request` yet.
    error SeedNotReady(uint256 request);
    /// @notice The value for `request` can no longer be proven. Request a new one.
    error SeedExpired(uint256 request);
    /// @notice `proof` does not prove the value for `request`.
    error SeedProofInvalid(uint256 request);

    /// @notice The next point whose value nobody knows now.
    function request() external view returns (uint256);

    /// @notice The seed of `request_`, proven by `proof`.
    function seed(uint256 request_, bytes calldata proof) external view returns (bytes32);

    /// @notice True once no proof for `request_` is accepted any more.
    function expired(uint256 request_) external view returns (bool);
}
