// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskTypes} from "./ITaskTypes.sol";

/// @title Proposals, coming and going, and what can be read.
interface ITaskRegistry is ITaskTypes {
    function propose(TaskParams calldata params) external returns (uint256 taskId);
    /// @notice No more proposals, for good. The guardian alone, who can do nothing else: tasks that exist go on, and
    ///         everybody can take home what is theirs.
    /// @dev Not to be taken back: who could open and close at will would choose who may propose.
    function stopProposals() external;
    function joinAsAggregator(uint256 taskId) external;
    /// @notice Locks the hospital's bond, and says by which keys it is reached. See `HospitalJoined`.
    /// @param transportProof the key's ECDSA signature with SHA-256 on `transportMessage`: r and s, 64 bytes.
    function joinAsHospital(
        uint256 taskId,
        uint256 rows,
        bytes calldata transportKey,
        bytes calldata transportProof,
        bytes32 sealingKey
    ) external;
    function joinAsVoter(uint256 taskId) external;
    /// @notice A hospital that was absent takes part again from the next round on. Between the start of a round's
    ///         commitments and the end of its publication.
    function resume(uint256 taskId) external;
    /// @notice Adds to the pool while others join: every round pays more by an even part of it. The operator alone, to whom
    ///         what is left goes back in the end. The aggregator's bond must outweigh its larger fee, too (`ParamsInvalid`).
    function fund(uint256 taskId, uint128 amount) external;
    /// @notice No further round. The operator alone, once. While others join it ends the task; later the round under way is
    ///         played and paid as ever, and what is left of the pool goes back. Statistics alone are not to be had: after
    ///         their round one more is played.
    function stop(uint256 taskId) external;
    function claim() external returns (uint256 amount);
    /// @notice Unlocks an account's bonds of an ended task; anyone may call for anyone.
    function releaseBond(uint256 taskId, address account) external;

    /// @notice Who may stop proposals; zero: nobody.
    function guardian() external view returns (address);
    function proposalsStopped() external view returns (bool);
    function taskCount() external view returns (uint256);
    function params(uint256 taskId) external view returns (TaskParams memory);
    function state(uint256 taskId) external view returns (TaskState memory);
    function roundState(uint256 taskId, uint256 round) external view returns (RoundState memory);
    function hospitals(uint256 taskId) external view returns (Hospital[] memory);
    function voters(uint256 taskId) external view returns (Voter[] memory);
    /// @notice What a hospital's transport key signs so that it can join by it.
    function transportMessage(uint256 taskId, address hospital, bytes calldata transportKey)
        external
        view
        returns (bytes memory);
    /// @notice Members of a cohort: bit map over hospitals.
    function cohortMembers(uint256 taskId, uint256 round, uint256 cohort) external view returns (uint256);
    /// @notice Versioned hash of the blob that must be published, zero until summed; in a canary round of the one that is
    ///         published, zero until then.
    function expectedBlobHash(uint256 taskId, uint256 round, uint256 cohort, uint256 blob)
        external
        view
        returns (bytes32);
    function claimable(address account) external view returns (uint256);
    /// @notice Sum of all `claimable`.
    function totalClaimable() external view returns (uint256);
}
