// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @title A source of public randomness that nobody can know when it is requested.
/// @notice Stateless: a request is a point in the future, and a seed is a function of that point alone,
///         so who delivers the proof, and when, cannot change the seed.
interface IBeacon {
    /// @notice The source has not produced the value for `request` yet.
    error SeedNotReady(uint256 request);
    /// @notice The value for `request` can no longer be proven; request a new one.
    error SeedExpired(uint256 request);
    /// @notice `proof` does not prove the value for `request`.
    error SeedProofInvalid(uint256 request);

    /// @notice The next point whose value is unknown to everybody now.
    function request() external view returns (uint256);

    /// @notice The seed of `request_`, proven by `proof`.
    function seed(uint256 request_, bytes calldata proof) external view returns (bytes32);

    /// @notice True once no proof for `request_` can be accepted any more.
    function expired(uint256 request_) external view returns (bool);
}
