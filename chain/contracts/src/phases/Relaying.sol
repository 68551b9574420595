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

/// @title Commitments that another than the hospital hands in, many at once: a hospital needs no ether.
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
            // A hospital, or anybody with its signature, may be faster: that must not undo the others' commitments.
            if (!pending.has(index)) continue;
            pending = pending.without(index);
            claims[count++] = _take(taskId, number, index, i, updates[i]);
        }
        if (count == 0) return;
        // Those that were skipped left the end of the array unused.
        assembly ("memory-safe") {
            mstore(claims, count)
        }
        if (!Openings.hold(updates, claims)) _refuse(updates, claims);
        round.pending = pending;
        if (pending == 0) _closeCommitting(taskId, task);
    }

    /// @dev Everything of one update but its opening.
    function _take(uint256 taskId, uint256 number, uint256 index, uint256 position, SignedUpdate calldata update)
        private
        returns (Claim memory claim)
    {
        address hospital = update.hospital;
        // Who relays a dealing's digest vouches that its bytes can be had: a hospital must not, by another's hand, be in
        // a masking that nobody can complete.
        if (update.dealing != 0) _requireAggregator(_tasks[taskId]);
        bytes memory points = _record(_tasks[taskId], number, hospital, index, update.points);
        bytes32 digest = Signatures.digest(taskId, number, points, update.dealing);
        bool isSigned = Signatures.isBy(hospital, digest, update.r, update.vs);
        if (!isSigned) revert SignatureInvalid(hospital);
        // As precompile 0x0A does: a value has one form.
        if (uint256(update.value) >= Kzg.MODULUS) revert OpeningInvalid(hospital);
        claim.update = position;
        (claim.ratio, claim.place) = Kzg.challenge(taskId, number, hospital, points);
        emit UpdateCommitted(taskId, number, hospital, points, update.dealing);
    }

    /// @dev Names the hospital by which a batch fails: the first that fails alone, at the latest the last one.
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
