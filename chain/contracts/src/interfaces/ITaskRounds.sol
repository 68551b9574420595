// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskTypes} from "./ITaskTypes.sol";

/// @title The steps of a round: train, commit, publish, judge, settle.
interface ITaskRounds is ITaskTypes {
    /// @notice Deals the cohorts with the beacon's value; anyone may call.
    function formCohorts(uint256 taskId, bytes calldata beaconProof) external;
    /// @notice A hospital of the round commits to its update and shows that it knows what it commits to.
    function commitUpdate(uint256 taskId, uint256 round, Update calldata update) external;
    /// @notice Commits for several hospitals of the round that signed their updates; anyone may call, and pays.
    /// @dev Reverts where one is wrong, with an error that names its hospital: call it without a transaction first. What
    ///      passed then cannot be made to fail by a hospital: those that committed meanwhile are skipped, and whether a
    ///      signature holds depends on nothing that can change. A transaction takes about 220 hospitals of one blob.
    function commitUpdates(uint256 taskId, uint256 round, SignedUpdate[] calldata updates) external;
    /// @notice Says, once for all cohorts, whose updates are in the sums. The aggregator alone.
    function fixSurvivors(uint256 taskId, uint256 round, uint256 survivors) external;
    /// @notice Adds up the survivors' commitments of one blob by weight; anyone may call.
    /// @param points the survivors' commitments in order of index, G1 in EIP-2537 encoding, 128 bytes each.
    function sumCommitments(uint256 taskId, uint256 round, uint256 cohort, uint256 blob, bytes calldata points) external;
    /// @notice Compares the transaction's blobs `txBlob …` with the expected sums of a cohort's blobs `firstBlob …`.
    function publish(uint256 taskId, uint256 round, uint256 cohort, uint256 firstBlob, uint256 txBlob, uint256 count)
        external;
    /// @notice Fixes the seed that tickets sign; anyone may call.
    function drawSeats(uint256 taskId, bytes calldata beaconProof) external;
    /// @param publicKey the voter's G2 key, 256 bytes. @param ticket its G1 signature on `ticketMessage`, 128 bytes.
    function commitScores(
        uint256 taskId,
        uint256 round,
        bytes calldata publicKey,
        bytes calldata ticket,
        bytes32 commitment
    ) external;
    /// @notice A voter that drew no seat says so, to let the phase end early. Costs nothing but gas.
    function standDown(uint256 taskId, uint256 round) external;
    /// @param scores one per cohort dealt (0 for one that is not viable), in order.
    function revealScores(uint256 taskId, uint256 round, int64[] calldata scores, bytes32 salt) external;
    /// @notice Settles a round once everybody seated has revealed, or the deadline passed; anyone may call.
    function settle(uint256 taskId, uint256 round) external;
    /// @notice Moves a task on whose deadline has passed; anyone may call, and is credited the task's `tickBounty`, or
    ///         what is left of the pool if that is less. In Forming and Drawing asks the beacon anew, once its value can
    ///         no longer be proven: that earns nothing, since it can happen any number of times.
    function tick(uint256 taskId) external;
}
