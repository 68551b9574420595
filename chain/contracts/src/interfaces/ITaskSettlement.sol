// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskTypes} from "./ITaskTypes.sol";

/// @title The end of a round: disclosed decoys, rewards and slashes.
interface ITaskSettlement is ITaskTypes {
    /// @notice Discloses a cohort's published blobs `firstBlob …` after the reveals: says if they were sign-flipped,
    ///         shows the survivors' points, and proves that the blobs are their sum. Anyone who knows the secrets may
    ///         call. Blobs that are disclosed already are skipped.
    /// @param negatedDelta the commitments to the negated delta behind `DecoysSet`, 128 bytes per blob of an update.
    function discloseDecoys(
        uint256 taskId,
        uint256 round,
        uint256 cohort,
        uint256 firstBlob,
        bytes32 seed,
        bytes calldata negatedDelta,
        Disclosed[] calldata disclosed
    ) external;
    /// @notice Settles a round once all seated voters have revealed, or the deadline has passed. Anyone may call. With
    ///         decoys it first starts the disclosing phase, and settles once every cohort is disclosed. A round that is
    ///         too large for one transaction, or void with nodes to slash, stays in phase `Settling`: call again until
    ///         it ends.
    function settle(uint256 taskId, uint256 round) external;
    /// @notice An account's reward and slash of a round, with the reason. The answer never changes after the round.
    function explain(uint256 taskId, uint256 round, address account) external view returns (Payout memory);
}
