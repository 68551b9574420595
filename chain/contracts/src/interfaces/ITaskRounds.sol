// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskTypes} from "./ITaskTypes.sol";

/// @title The steps of a round up to the reveals: train, commit, publish, judge.
interface ITaskRounds is ITaskTypes {
    /// @notice Deals the cohorts with the beacon's value; anyone may call.
    function formCohorts(uint256 taskId, bytes calldata beaconProof) external;
    /// @notice A hospital of the round commits to its update and shows that it knows what it commits to.
    function commitUpdate(uint256 taskId, uint256 round, Update calldata update) external;
    /// @notice Commits for several hospitals of the round that signed their updates; anyone may call, and pays. Updates with
    ///         a dealing the aggregator alone: it must have the dealing's bytes.
    /// @dev Reverts where one is wrong, with an error that names its hospital: call it without a transaction first. What
    ///      passed then cannot be made to fail by a hospital: those that committed meanwhile are skipped, and whether a
    ///      signature holds depends on nothing that can change. A transaction takes about 220 hospitals of one blob.
    function commitUpdates(uint256 taskId, uint256 round, SignedUpdate[] calldata updates) external;
    /// @notice Says, once for all cohorts, whose updates are in the sums. The aggregator alone.
    function fixSurvivors(uint256 taskId, uint256 round, uint256 survivors) external;
    /// @notice Adds up the survivors' commitments of one blob by weight; anyone may call.
    /// @param points the survivors' commitments in order of index, G1 in EIP-2537 encoding, 128 bytes each.
    function sumCommitments(uint256 taskId, uint256 round, uint256 cohort, uint256 blob, bytes calldata points) external;
    /// @notice Before it publishes a canary round the aggregator commits to which sums are turned. See `CanariesSet`.
    function setCanaries(uint256 taskId, uint256 round, bytes32 seedCommitment, bytes32 retreat) external;
    /// @notice Publishes a cohort's blobs `firstBlob …`: the transaction's blobs `txBlob …`. Without canaries they must be
    ///         the expected sums; with canaries that shows when they are opened. The aggregator alone.
    function publish(uint256 taskId, uint256 round, uint256 cohort, uint256 firstBlob, uint256 txBlob, uint256 count)
        external;
    /// @notice The same by versioned hashes, in a task with `digests`: that the bytes can be had, and commit to these,
    ///         the committee says.
    function publishDigests(uint256 taskId, uint256 round, uint256 cohort, uint256 firstBlob, bytes32[] calldata hashes)
        external;
    /// @notice Goes on without a cohort of which nothing is published. In masked tasks, whose aggregator sees only then
    ///         whether a cohort has a sum. It loses the fee for the cohort's weight, as for hospitals that it leaves out
    ///         of the survivors. The aggregator alone.
    function dropCohort(uint256 taskId, uint256 round, uint256 cohort) external;
    /// @notice Drops a cohort whose survivors' uploads do not add up to what they committed to, and has it judged: once all
    ///         other cohorts are published or dropped, its hospitals testify. The aggregator alone.
    function accuseCohort(uint256 taskId, uint256 round, uint256 cohort, bytes32 accusation, bytes32 evidence) external;
    /// @notice A hospital of an accused cohort says, in the first third of Blaming, what it masked with, as commitments; and
    ///         in the second shows what it shares with who said otherwise (docs/secure-aggregation.md).
    /// @param step 0 or 1, which it must be by then: whoever sends it for the hospital cannot have it count for another.
    function testify(uint256 taskId, uint256 round, uint256 step, bytes calldata testimony) external;
    /// @notice In the last third of Blaming the aggregator names whose doing it is. If most of the committee that is drawn
    ///         then disagree, it is slashed for it, and else they are.
    /// @param hospitals bit map, of accused cohorts; at least one.
    function nameCulprits(uint256 taskId, uint256 round, uint256 hospitals) external;
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
    /// @param scores one per cohort dealt (0 for one that is not viable), in order. With canaries twice as many: first
    ///        those of every cohort's candidate as published, then of what it is when turned. In a task with canaries or
    ///        `digests`, and in a round with accused cohorts, a ballot that starts with -2^63 + 1 says that what is published, or
    ///        who is named, does not match.
    function revealScores(uint256 taskId, uint256 round, int64[] calldata scores, bytes32 salt) external;
    /// @notice Moves a task on whose deadline has passed; anyone may call, and is credited the task's `tickBounty`, or
    ///         what is left of the pool if that is less. In Forming and Drawing asks the beacon anew, once its value can
    ///         no longer be proven: that earns nothing, since it can happen any number of times.
    function tick(uint256 taskId) external;

    /// @notice How a hospital must open its commitments: `ratio` r combines them to the sum of r^i · C_i, and `point` is
    ///         where the combination is opened. Both scalars are bound to chain, contract, task, round, sender and points.
    /// @param points the commitments, G1 compressed, 48 bytes per blob.
    function challenge(uint256 taskId, uint256 round, address hospital, bytes calldata points)
        external
        view
        returns (uint256 ratio, uint256 point);
    /// @notice What a hospital signs for `commitUpdates`: EIP-712, UpdateCommitment(uint256 taskId,uint256 round,bytes points,bytes32
    ///         dealing) in the domain ("Consilium", "1", chain, this contract).
    /// @param points the commitments, G1 compressed, 48 bytes per blob.
    function commitmentDigest(uint256 taskId, uint256 round, bytes calldata points, bytes32 dealing)
        external
        view
        returns (bytes32);
    /// @notice What a voter's ticket of this round signs.
    function ticketMessage(uint256 taskId, uint256 round, address voter) external view returns (bytes memory);
    function scoreCommitment(uint256 taskId, uint256 round, address voter, int64[] calldata scores, bytes32 salt)
        external
        view
        returns (bytes32);
}
