// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskTypes} from "./ITaskTypes.sol";

/// @title Coming, going, being paid, and what can be read.
interface ITaskRegistry is ITaskTypes {
    function propose(TaskParams calldata params) external returns (uint256 taskId);
    /// @notice No more proposals, for good. The guardian alone, who can do nothing else: tasks that exist go on, and
    ///         everybody can take home what is theirs.
    /// @dev Not to be taken back: who could open and close at will would choose who may propose.
    function stopProposals() external;
    function joinAsAggregator(uint256 taskId) external;
    function joinAsHospital(uint256 taskId, uint256 rows, bytes calldata transportKey) external;
    function joinAsVoter(uint256 taskId) external;
    /// @notice A hospital that was absent takes part again from the next round on. Between the start of a round's
    ///         commitments and the end of its publication.
    function resume(uint256 taskId) external;
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
    /// @notice What an account was paid and slashed in a round, and why; the same answer at any time after its end.
    function explain(uint256 taskId, uint256 round, address account) external view returns (Payout memory);
    /// @notice Members of a cohort: bit map over hospitals.
    function cohortMembers(uint256 taskId, uint256 round, uint256 cohort) external view returns (uint256);
    /// @notice Versioned hash of the sum that must be published; zero until summed.
    function expectedBlobHash(uint256 taskId, uint256 round, uint256 cohort, uint256 blob)
        external
        view
        returns (bytes32);
    function claimable(address account) external view returns (uint256);
    /// @notice Sum of all `claimable`.
    function totalClaimable() external view returns (uint256);
    /// @notice How a hospital must open its commitments: `ratio` r combines them to the sum of r^i · C_i, and `point` is
    ///         where the combination is opened. Both scalars are bound to chain, contract, task, round, sender and points.
    /// @param points the commitments, G1 compressed, 48 bytes per blob.
    function challenge(uint256 taskId, uint256 round, address hospital, bytes calldata points)
        external
        view
        returns (uint256 ratio, uint256 point);
    /// @notice What a hospital signs for `commitUpdates`: EIP-712, UpdateCommitment(uint256 taskId,uint256 round,bytes points)
    ///         in the domain ("Consilium", "1", chain, this contract).
    /// @param points the commitments, G1 compressed, 48 bytes per blob.
    function commitmentDigest(uint256 taskId, uint256 round, bytes calldata points) external view returns (bytes32);
    /// @notice What a ticket of this round signs.
    function ticketMessage(uint256 taskId, uint256 round) external view returns (bytes memory);
    function scoreCommitment(uint256 taskId, uint256 round, address voter, int64[] calldata scores, bytes32 salt)
        external
        view
        returns (bytes32);
}
