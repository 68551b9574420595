// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../interfaces/IStaking.sol";
import {ITaskRounds} from "../interfaces/ITaskRounds.sol";
import {Bits} from "../libraries/Bits.sol";
import {Kzg} from "../libraries/Kzg.sol";
import {Claim, Openings} from "../libraries/Openings.sol";
import {Signatures} from "../libraries/Signatures.sol";
import {Round, Task} from "../types/Task.sol";
import {Training} from "./Training.sol";

/// @title Batches of commitments that another account sends, so that a hospital needs no ether.
abstract contract Relaying is Training {
    using Bits for uint256;

    /// @inheritdoc ITaskRounds
    function commitUpdates(uint256 taskId, uint256 number, SignedUpdate[] calldata updates) external {
        (Task storage task, Round storage round) = _open(taskId, Phase.Committing, number);
        uint256 pending = round.pending;
        Claim[] memory claims = new Claim[](updates.length);
        uint256 count;
        for (uint256 i = 0; i < updates.length; ++i) {
            uint256 index = _member(taskId, task, updates[i].hospital, IStaking.Role.Hospital, round.members);
            // A hospital, or anybody with its signature, may have been faster. That must not undo the others'
            // commitments.
            if (!pending.has(index)) continue;
            pending = pending.without(index);
            claims[count++] = _take(taskId, number, index, i, updates[i]);
        }
        if (count == 0) return;
        // Skipped updates leave the end of the array unused.
        assembly ("memory-safe") {
            mstore(claims, count)
        }
        if (!Openings.hold(updates, claims)) _refuse(updates, claims);
        round.pending = pending;
        if (pending == 0) _closeCommitting(taskId, task);
    }

    /// @dev Checks and records one update, except for its KZG proof.
    function _take(uint256 taskId, uint256 number, uint256 index, uint256 position, SignedUpdate calldata update)
        private
        returns (Claim memory claim)
    {
        address hospital = update.hospital;
        // The sender vouches that it has the bytes of the secret shares. Otherwise a relayer could put a hospital into
        // a masked sum that nobody can unmask.
        if (update.shareBundle != 0) _requireAggregator(_tasks[taskId]);
        bytes memory points = _record(_tasks[taskId], number, hospital, index, update.points);
        bytes32 digest = Signatures.digest(taskId, number, points, update.shareBundle, update.base);
        bool isSigned = Signatures.isBy(hospital, digest, update.r, update.vs);
        if (!isSigned) revert SignatureInvalid(hospital);
        // A value has one form, as for precompile 0x0A.
        if (uint256(update.value) >= Kzg.MODULUS) revert OpeningInvalid(hospital);
        claim.update = position;
        (claim.ratio, claim.point) = Kzg.challenge(taskId, number, hospital, points);
        emit UpdateCommitted(taskId, number, hospital, points, update.shareBundle, update.base);
    }

    /// @dev Reverts with the first hospital whose proof fails alone; the last one needs no check.
    function _refuse(SignedUpdate[] calldata updates, Claim[] memory claims) private view {
        Claim[] memory one = new Claim[](1);
        uint256 last = claims.length - 1;
        for (uint256 i = 0; i < last; ++i) {
            one[0] = claims[i];
            if (!Openings.hold(updates, one)) revert OpeningInvalid(updates[claims[i].update].hospital);
        }
        revert OpeningInvalid(updates[claims[last].update].hospital);
    }
}
