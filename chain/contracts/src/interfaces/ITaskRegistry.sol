// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskTypes} from "./ITaskTypes.sol";

/// @title Proposals, how a round ends, and what can be read.
interface ITaskRegistry is ITaskTypes {
    function propose(TaskParams calldata params) external returns (uint256 taskId);
    /// @notice No more proposals, for good. The guardian alone, who can do nothing else: tasks that exist go on, and
    ///         everybody can take home what is theirs.
    /// @dev Not to be taken back: who could open and close at will would choose who may propose.
    function stopProposals() external;
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
    ///         first starts the opening phase, and settles once every cohort is opened.
    function settle(uint256 taskId, uint256 round) external;

    /// @notice Who may stop proposals; zero: nobody.
    function guardian() external view returns (address);
    function proposalsStopped() external view returns (bool);
    function taskCount() external view returns (uint256);
    function params(uint256 taskId) external view returns (TaskParams memory);
    function state(uint256 taskId) external view returns (TaskState memory);
    function roundState(uint256 taskId, uint256 round) external view returns (RoundState memory);
    function hospitals(uint256 taskId) external view returns (Hospital[] memory);
    function voters(uint256 taskId) external view returns (Voter[] memory);
    /// @notice What an account was paid and slashed in a round, and why; the same answer at any time after its end.
    function explain(uint256 taskId, uint256 round, address account) external view returns (Payout memory);
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
