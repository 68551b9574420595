// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IEnsembles} from "../interfaces/IEnsembles.sol";

/// @title The ensembles, and how their amounts are divided.
abstract contract Ensembles is IEnsembles {
    /// @notice An ensemble's number is above this, and a task's is below: tasks count up from 1. JSON keeps both exactly.
    uint256 public constant ENSEMBLES = 1 << 48;
    uint256 private constant FEWEST = 2;
    uint256 private constant MOST = 16;

    uint64[][] private _ensembles; // members, ascending
    mapping(bytes32 taskIdsHash => uint256) private _ids;

    /// @inheritdoc IEnsembles
    function formEnsemble(uint256[] calldata taskIds) external returns (uint256 id) {
        uint256 count = taskIds.length;
        if (count < FEWEST || count > MOST) revert EnsembleInvalid(taskIds);
        (uint64[] memory members, uint256[] memory gains) = (new uint64[](count), new uint256[](count));
        for (uint256 i = 0; i < count; ++i) {
            uint256 taskId = taskIds[i];
            if (i > 0 && taskId <= taskIds[i - 1]) revert EnsembleInvalid(taskIds);
            gains[i] = _gainOf(taskId);
            if (gains[i] == 0) revert NoGain(taskId);
            members[i] = uint64(taskId); // a minted task's: counted up from 1
        }
        bytes32 hash = keccak256(abi.encode(taskIds));
        if (_ids[hash] != 0) revert EnsembleKnown(_ids[hash]);
        _ensembles.push(members);
        id = ENSEMBLES + _ensembles.length;
        _ids[hash] = id;
        emit EnsembleFormed(id, taskIds, gains);
    }

    /// @inheritdoc IEnsembles
    function ensemble(uint256 id) public view returns (uint256[] memory taskIds, uint256[] memory gains) {
        if (!_isEnsemble(id)) revert EnsembleUnknown(id);
        uint64[] memory members = _ensembles[id - ENSEMBLES - 1];
        (taskIds, gains) = (new uint256[](members.length), new uint256[](members.length));
        for (uint256 i = 0; i < members.length; ++i) {
            (taskIds[i], gains[i]) = (members[i], _gainOf(members[i]));
        }
    }

    function _isEnsemble(uint256 id) internal view returns (bool) {
        return id > ENSEMBLES && id - ENSEMBLES <= _ensembles.length;
    }

    /// @dev Divides by the gains. The sum up to each member is rounded down, so nothing is left.
    function _divided(uint256 amount, uint256[] memory gains) internal pure returns (uint256[] memory amounts) {
        uint256 all;
        for (uint256 i = 0; i < gains.length; ++i) {
            all += gains[i];
        }
        amounts = new uint256[](gains.length);
        (uint256 upTo, uint256 given) = (0, 0);
        for (uint256 i = 0; i < gains.length; ++i) {
            upTo += gains[i];
            amounts[i] = amount * upTo / all - given;
            given += amounts[i];
        }
    }

    /// @dev Of a task whose parts are minted: others are refused.
    function _gainOf(uint256 taskId) internal view virtual returns (uint256);
}
