// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../interfaces/IStaking.sol";
import {ITaskRounds} from "../interfaces/ITaskRounds.sol";
import {Bits} from "../libraries/Bits.sol";
import {Signatures} from "../libraries/Signatures.sol";
import {Round, Running, Task} from "../types/Task.sol";
import {Training} from "./Training.sol";

/// @title Batches of commitments that another account sends, so that a hospital needs no ether.
abstract contract Relaying is Training {
    using Bits for uint256;

    /// @inheritdoc ITaskRounds
    function commitUpdates(uint256 taskId, uint256 number, SignedUpdate[] calldata updates) external {
        (Task storage task, Round storage round) = _open(taskId, Phase.Committing, number);
        uint256 members = round.members;
        uint256 before = round.pending;
        uint256 pending = before;
        Running memory running;
        for (uint256 i = 0; i < updates.length; ++i) {
            SignedUpdate calldata update = updates[i];
            uint256 index = _member(taskId, task, update.hospital, IStaking.Role.Hospital, members);
            // A hospital, or anybody with its signature, may have been faster. That must not undo the others'
            // commitments.
            if (!pending.has(index)) continue;
            if (pending == before || update.cohort != running.cohort) {
                _store(task, number, running); // before the first, there is nothing to store
                running = _load(task, number, update.cohort);
            }
            pending = pending.without(index);
            _record(running, update.hospital, index, update.pointHashes);
            _take(taskId, number, update);
        }
        if (pending == before) return;
        _store(task, number, running);
        round.pending = pending;
        if (pending == 0) _closeCommitting(taskId, task);
    }

    /// @dev Checks the signature of an update, and announces it.
    function _take(uint256 taskId, uint256 number, SignedUpdate calldata update) private {
        // The sender vouches that it has the bytes of the secret shares. Otherwise a relayer could put a hospital into
        // a masked sum that nobody can unmask.
        if (update.shareBundle != 0) _requireAggregator(_tasks[taskId]);
        bytes32 digest = Signatures.digest(taskId, number, update.pointHashes, update.shareBundle, update.base);
        bool isSigned = Signatures.isBy(update.hospital, digest, update.r, update.vs);
        if (!isSigned) revert SignatureInvalid(update.hospital);
        emit UpdateCommitted(taskId, number, update.hospital, update.pointHashes, update.shareBundle, update.base);
    }
}
