// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskTypes} from "./ITaskTypes.sol";

/// @title How a round ends, and what it came to.
interface ITaskSettlement is ITaskTypes {
    /// @notice Opens a cohort's published blobs `firstBlob …` after the reveals: shows which way it was published, and that
    ///         it is the sum of what the survivors committed to. Anyone who knows the secrets may call; what is open already
    ///         is passed over.
    /// @param retreat the points behind `CanariesSet`, 128 bytes per blob of an update.
    function openCanaries(
        uint256 taskId,
        uint256 round,
        uint256 cohort,
        uint256 firstBlob,
        bytes32 seed,
        bytes calldata retreat,
        Opened[] calldata opened
    ) external;
    /// @notice Settles a round once everybody seated has revealed, or the deadline passed; anyone may call. With canaries it
    ///         first starts the opening phase, and settles once every cohort is opened. Where a round is too large for one
    ///         transaction, or void with somebody to slash, phase `Settling` remains: call again until it is over.
    function settle(uint256 taskId, uint256 round) external;
    /// @notice What an account was paid and slashed in a round, and why; the same answer at any time after its end.
    function explain(uint256 taskId, uint256 round, address account) external view returns (Payout memory);
}
