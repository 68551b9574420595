// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskTypes} from "./ITaskTypes.sol";

/// @title The steps of a round up to the reveals: train, commit, publish, judge.
interface ITaskRounds is ITaskTypes {
    /// @notice Assigns hospitals to cohorts by the beacon's value. Anyone may call.
    function formCohorts(uint256 taskId, bytes calldata beaconProof) external;
    /// @notice Commits to the update of a hospital of the cohort.
    /// @dev Nobody shows a point before all commitments are fixed. So no hospital can make its point depend on another's,
    ///      such as the negative of it. A hash names its hospital, so a copy of it cannot be shown.
    /// @param cohort the sender's cohort in this round.
    function commitUpdate(uint256 taskId, uint256 round, uint256 cohort, Update calldata update) external;
    /// @notice Commits for several hospitals of the round that signed their updates. Anyone may call, and pays the gas:
    ///         the least if the updates of a cohort follow one another. Only the aggregator may send updates with secret
    ///         shares, because it must have their bytes.
    /// @dev Reverts if one update is wrong, with an error that names its hospital: simulate the call first. A call that
    ///      passes then cannot be made to fail by a hospital: hospitals that committed meanwhile are skipped, and
    ///      nothing that a signature depends on can change. A transaction takes all hospitals of a task with one blob
    ///      each, or 29 of one cohort with 128 blobs: nodes pass on no more than 128 KiB. A cohort's first commitment
    ///      costs most, 22,100 gas a blob, so with many cohorts and blobs a transaction's gas limit comes first.
    function commitUpdates(uint256 taskId, uint256 round, SignedUpdate[] calldata updates) external;
    /// @notice Fixes, once for all cohorts, the hospitals whose updates are in the sums. Only the aggregator may call.
    function fixSurvivors(uint256 taskId, uint256 round, uint256 survivors) external;
    /// @notice Shows the survivors' points for one blob, and adds them up by weight. Anyone may call.
    function sumCommitments(
        uint256 taskId,
        uint256 round,
        uint256 cohort,
        uint256 blob,
        Commitments calldata commitments
    ) external;
    /// @notice Commits the aggregator, before it publishes, to the sums that it flips. See `DecoysSet`.
    function setDecoys(uint256 taskId, uint256 round, bytes32 seedCommitment, bytes32 negatedDelta) external;
    /// @notice Publishes a cohort's blobs `firstBlob …`: the transaction's blobs `txBlob …`. Without decoys they must
    ///         be the expected sums; with decoys `discloseDecoys` compares them. Only the aggregator may call.
    function publish(uint256 taskId, uint256 round, uint256 cohort, uint256 firstBlob, uint256 txBlob, uint256 count)
        external;
    /// @notice Publishes versioned hashes alone, in a task with `digests`. The committee says if the bytes are
    ///         available and have these hashes.
    function publishDigests(uint256 taskId, uint256 round, uint256 cohort, uint256 firstBlob, bytes32[] calldata hashes)
        external;
    /// @notice Goes on without a cohort of which nothing is published. Only for masked tasks, whose aggregator learns
    ///         late if a cohort has a sum. The aggregator loses the fee for the cohort's weight, as for hospitals that
    ///         it leaves out of the survivors. Only the aggregator may call.
    function dropCohort(uint256 taskId, uint256 round, uint256 cohort) external;
    /// @notice Drops a cohort whose survivors' uploads do not add up to their commitments, and starts a dispute: once
    ///         all other cohorts are published or dropped, its hospitals submit evidence. Only the aggregator may call.
    function accuseCohort(uint256 taskId, uint256 round, uint256 cohort, bytes32 accusation, bytes32 evidence) external;
    /// @notice Records the evidence of a hospital of an accused cohort. In the first third of the dispute it commits
    ///         to its masks; in the second it discloses the secrets behind masks that others contest
    ///         (docs/secure-aggregation.md).
    /// @param step 0 or 1, the current step. A relayer cannot make evidence count for another step.
    function submitEvidence(uint256 taskId, uint256 round, uint256 step, bytes calldata evidence) external;
    /// @notice Names the cheaters, in the last third of the dispute. A committee is drawn then. If most of it
    ///         disagrees, the aggregator is slashed, otherwise the named hospitals are. Only the aggregator may call.
    /// @param hospitals bit map over hospitals of accused cohorts; at least one.
    function nameCheaters(uint256 taskId, uint256 round, uint256 hospitals) external;
    /// @notice Fixes the seed that tickets sign. Anyone may call.
    function drawSeats(uint256 taskId, bytes calldata beaconProof) external;
    /// @notice Takes a seat with a winning ticket, and commits to scores (`scoreCommitment`).
    /// @param publicKey the voter's G2 key, 256 bytes. @param ticket its G1 signature on `ticketMessage`, 128 bytes.
    function commitScores(
        uint256 taskId,
        uint256 round,
        bytes calldata publicKey,
        bytes calldata ticket,
        bytes32 commitment
    ) external;
    /// @notice Says that the voter drew no seat, so that the phase can end early.
    function standDown(uint256 taskId, uint256 round) external;
    /// @notice Reveals the scores behind a voter's commitment.
    /// @param scores one per cohort in order, 0 for a cohort that is not viable. With decoys twice as many: first
    ///        every cohort's candidate as published, then sign-flipped. In a task with decoys or `digests`, and in a
    ///        round with accused cohorts, a ballot that starts with -2^63 + 1 says that published data or named
    ///        cheaters are wrong.
    function revealScores(uint256 taskId, uint256 round, int64[] calldata scores, bytes32 salt) external;
    /// @notice Ends a phase whose deadline has passed. Anyone may call, and earns the task's `tickBounty`, as far as
    ///         the pool reaches. In Forming and Drawing it requests a new beacon value once the old one can no longer
    ///         be proven. That earns nothing, because it can happen any number of times.
    function tick(uint256 taskId) external;

    /// @notice The hash by which a hospital commits to a point. It is bound to chain, contract, task, round, hospital
    ///         and blob.
    /// @param point the KZG commitment to the blob, G1 compressed, 48 bytes. Two random scalars of the blob hide it.
    function pointHash(uint256 taskId, uint256 round, address hospital, uint256 blob, bytes calldata point)
        external
        view
        returns (bytes32);
    /// @notice The digest that a hospital signs for `commitUpdates` (EIP-712):
    ///         UpdateCommitment(uint256 taskId,uint256 round,bytes32[] pointHashes,bytes32 dealing,bytes32 base) in the
    ///         domain ("Consilium", "1", chain, this contract).
    /// @param pointHashes one per blob.
    function commitmentDigest(
        uint256 taskId,
        uint256 round,
        bytes32[] calldata pointHashes,
        bytes32 shareBundle,
        bytes32 base
    ) external view returns (bytes32);
    /// @notice The message that a voter's ticket of this round signs.
    function ticketMessage(uint256 taskId, uint256 round, address voter) external view returns (bytes memory);
    function scoreCommitment(uint256 taskId, uint256 round, address voter, int64[] calldata scores, bytes32 salt)
        external
        view
        returns (bytes32);
}
