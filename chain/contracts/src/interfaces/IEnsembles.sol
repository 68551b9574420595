// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @title Several finished models that answer together, and are sold at one price.
/// @notice An ensemble's number is its id in channels, offers, tills and vouchers, like a task's. A sale of it is a sale
///         of each member: by the member's own terms, and of the member's part of the amount. A member's weight is its
///         gain over the sum of all gains.
interface IEnsembles {
    event EnsembleFormed(uint256 indexed id, uint256[] taskIds, uint256[] gains);

    /// @notice Give 2 to 16 tasks, each once, in ascending order.
    error EnsembleInvalid(uint256[] taskIds);
    /// @notice These tasks are an ensemble already.
    error EnsembleKnown(uint256 id);
    error EnsembleUnknown(uint256 id);
    /// @notice No round of this task improved its model, so its weight would be zero.
    error NoGain(uint256 taskId);

    /// @notice Forms an ensemble of tasks whose parts are minted. Anyone may call: each member is sold and paid by its
    ///         own terms. The contract knows no data: buyers check that the models take the same inputs.
    function formEnsemble(uint256[] calldata taskIds) external returns (uint256 id);

    /// @return taskIds the members, ascending.
    /// @return gains theirs (`IModelShares.Minting.gain`): all are positive, and none ever changes.
    function ensemble(uint256 id) external view returns (uint256[] memory taskIds, uint256[] memory gains);
}
