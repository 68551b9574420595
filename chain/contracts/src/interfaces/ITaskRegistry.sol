// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskTypes} from "./ITaskTypes.sol";

/// @title Proposals, joining and leaving, and reads.
interface ITaskRegistry is ITaskTypes {
    /// @notice Proposes a task, or all shards of a model: tasks of the same terms with consecutive numbers, each with
    ///         the whole `pool`.
    /// @return taskId the first one's.
    function propose(TaskParams calldata params) external returns (uint256 taskId);
    /// @notice Stops proposals for good. Only the guardian may call, and it has no other power: running tasks go on,
    ///         and everybody can withdraw what is theirs.
    /// @dev Nobody can undo this: a guardian that opens and closes at will would choose who may propose.
    function stopProposals() external;
    function joinAsAggregator(uint256 taskId) external;
    /// @notice Locks the hospital's bond, and publishes its keys. See `HospitalJoined`.
    /// @param transportProof ECDSA signature of the transport key, with SHA-256, on `transportMessage`: r and s, 64
    ///        bytes.
    function joinAsHospital(
        uint256 taskId,
        uint256 rows,
        bytes calldata transportKey,
        bytes calldata transportProof,
        bytes32 encryptionKey
    ) external;
    function joinAsVoter(uint256 taskId) external;
    /// @notice Lets an absent hospital take part again from the next round on. It may call between the start of a
    ///         round's commitments and the end of its publication.
    function resume(uint256 taskId) external;
    /// @notice Adds to the pool while others join: every round pays an even part more. Only the operator may call, and
    ///         the remainder goes back to it in the end. The aggregator's bond must outweigh its larger fee
    ///         (`ParamsInvalid`).
    function fund(uint256 taskId, uint128 amount) external;
    /// @notice Stops the task after the current round. Only the operator may call, once. While others join, this ends
    ///         the task. Later the current round is played and paid as usual, and the rest of the pool goes back. After
    ///         the statistics round one more is played, so that statistics cannot be had without pay.
    function stop(uint256 taskId) external;
    function claim() external returns (uint256 amount);
    /// @notice Unlocks an account's bond after the task ended. Anyone may call for anyone.
    function releaseBond(uint256 taskId, address account) external;

    /// @notice The account that may stop proposals; zero for nobody.
    function guardian() external view returns (address);
    function proposalsStopped() external view returns (bool);
    function taskCount() external view returns (uint256);
    function params(uint256 taskId) external view returns (TaskParams memory);
    function state(uint256 taskId) external view returns (TaskState memory);
    function roundState(uint256 taskId, uint256 round) external view returns (RoundState memory);
    function hospitals(uint256 taskId) external view returns (Hospital[] memory);
    function voters(uint256 taskId) external view returns (Voter[] memory);
    /// @notice The message that a hospital's transport key signs, so that the hospital can join with it.
    function transportMessage(uint256 taskId, address hospital, bytes calldata transportKey)
        external
        view
        returns (bytes memory);
    /// @notice The members of a cohort, as a bit map over hospitals.
    function cohortMembers(uint256 taskId, uint256 round, uint256 cohort) external view returns (uint256);
    /// @notice The versioned hash of the blob that must be published; zero until it is summed. In a decoy round the
    ///         hash of the published blob; zero until it is published.
    function expectedBlobHash(uint256 taskId, uint256 round, uint256 cohort, uint256 blob)
        external
        view
        returns (bytes32);
    function claimable(address account) external view returns (uint256);
    /// @notice The sum of all `claimable`.
    function totalClaimable() external view returns (uint256);
}
