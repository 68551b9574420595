// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {IStaking} from "../interfaces/IStaking.sol";
import {ITaskRounds} from "../interfaces/ITaskRounds.sol";
import {Bits} from "../libraries/Bits.sol";
import {Cohorts} from "../libraries/Cohorts.sol";
import {RunningHash} from "../libraries/RunningHash.sol";
import {Keys, Round, Running, Task} from "../types/Task.sol";
import {Concluding} from "./Concluding.sol";

/// @title Hospitals' part of a round: cohorts, commitments, and survivors.
abstract contract Training is Concluding, ITaskRounds {
    using Bits for uint256;

    /// @inheritdoc ITaskRounds
    function formCohorts(uint256 taskId, bytes calldata beaconProof) external {
        Task storage task = _in(taskId, Phase.Forming);
        uint256 number = task.state.round;
        Round storage round = task.rounds[number];
        _requireShards(taskId, task, number);
        bool hasSeed = round.beaconRequest != 0 || task.rounds[number - 1].seatSeed != 0;
        if (!hasSeed) return _awaitBeacon(taskId, task, Phase.Forming); // a shard, whose wait for the others is over
        bytes32 seed = round.beaconRequest == 0
            ? Cohorts.seed(task.rounds[number - 1].seatSeed)
            : Cohorts.seed(beacon.seed(round.beaconRequest, beaconProof));

        uint256 members = task.state.activeHospitals;
        // At least one: a round does not start with fewer hospitals than one cohort takes.
        uint256 count = Math.min(task.params.cohorts, members.count() / task.params.minCohortSize);
        uint256[] memory cohorts = Cohorts.assign(members, seed, count);
        for (uint256 i = 0; i < count; ++i) {
            task.cohorts[Keys.entry(number, i)].members = cohorts[i];
        }
        round.cohortSeed = seed;
        round.members = members;
        round.pending = members;
        round.cohorts = uint8(count);
        round.blobs = uint8(task.params.updateBlobs);
        emit CohortsFormed(taskId, number, seed, cohorts);
        _startPhase(taskId, task, Phase.Committing, task.params.commitWindow);
    }

    /// @inheritdoc ITaskRounds
    function commitUpdate(uint256 taskId, uint256 number, uint256 cohort, Update calldata update) external {
        (Task storage task, Round storage round) = _open(taskId, Phase.Committing, number);
        uint256 index = _member(taskId, task, msg.sender, IStaking.Role.Hospital, round.members);
        uint256 pending = round.pending;
        if (!pending.has(index)) revert AlreadyCommitted(taskId, msg.sender);
        Running memory running = _load(task, number, cohort);
        _record(running, msg.sender, index, update.pointHashes);
        _store(task, number, running);
        pending = pending.without(index);
        round.pending = pending;
        bytes32 shares = _recordShares(taskId, number, update.shareBundle);
        emit UpdateCommitted(taskId, number, msg.sender, update.pointHashes, shares, update.base);
        if (pending == 0) _closeCommitting(taskId, task);
    }

    /// @inheritdoc ITaskRounds
    /// @dev A cohort that falls below its minimum leaves the round. Nobody can tell on chain which of its hospitals
    ///      withheld an upload. So only hospitals left out of a cohort that stays are marked absent, and slashed in the
    ///      end.
    function fixSurvivors(uint256 taskId, uint256 number, uint256 survivors) external {
        (Task storage task, Round storage round) = _open(taskId, Phase.Uploading, number);
        _requireAggregator(task);
        (uint256 viable, uint256 members) = _viable(task, round, number, survivors);
        if (!members.contains(survivors) || !round.committed().contains(survivors)) revert SurvivorsInvalid(survivors);
        _noteLate(task, round, task.params.uploadWindow);
        round.viableCohorts = uint64(viable);
        round.survivors = survivors;
        emit SurvivorsFixed(taskId, number, survivors);
        _markAbsent(taskId, task, members & ~round.pending & ~survivors);
        if (viable == 0) _conclude(taskId, task, VoidReason.TooFewHospitals);
        else _startGracedPhase(taskId, task, Phase.Publishing, task.params.publishWindow);
    }

    /// @dev A round's model is derived from the sums of all shards in the rounds before.
    function _requireShards(uint256 taskId, Task storage task, uint256 number) private view {
        (uint256 first, uint256 count) = _shards(taskId, task);
        for (uint256 other = first; other < first + count; ++other) {
            TaskState storage state = _tasks[other].state;
            bool isBehind = state.round < number && state.phase != Phase.Ended;
            if (isBehind) revert ShardBehind(other, state.round, number);
        }
    }

    function _recordShares(uint256 taskId, uint256 number, bytes calldata shareBundle) private returns (bytes32) {
        if (shareBundle.length == 0) return 0;
        emit SharesPublished(taskId, number, msg.sender, shareBundle);
        return keccak256(shareBundle);
    }

    /// @dev Ends the commitments. The round goes on with the cohorts that have enough of them.
    function _closeCommitting(uint256 taskId, Task storage task) internal {
        uint256 number = task.state.round;
        Round storage round = task.rounds[number];
        _markAbsent(taskId, task, round.pending);
        round.viableCohorts = uint64(Bits.below(round.cohorts));
        (uint256 viable,) = _viable(task, round, number, round.committed());
        round.viableCohorts = uint64(viable);
        if (viable == 0) _conclude(taskId, task, VoidReason.TooFewHospitals);
        else if (_openShard(taskId, task, number) != 0) _startPhase(taskId, task, Phase.Committing, 0);
        else _startGracedPhase(taskId, task, Phase.Uploading, task.params.uploadWindow);
    }

    /// @dev Starts the uploads of a shard whose commitments were closed before those of the others.
    function _startUploading(uint256 taskId, Task storage task) internal {
        uint256 other = _openShard(taskId, task, task.state.round);
        if (other != 0) revert ShardBehind(other, task.state.round, task.state.round);
        _startGracedPhase(taskId, task, Phase.Uploading, task.params.uploadWindow);
    }

    /// @dev Another shard in which hospitals may still commit to this round; 0 without one. Until then nobody shows an
    ///      update: a hospital that knew another shard's sum could commit to a copy of it, and be paid for it. Round 0
    ///      pays nobody.
    function _openShard(uint256 taskId, Task storage task, uint256 number) private view returns (uint256) {
        if (number == 0) return 0;
        (uint256 first, uint256 count) = _shards(taskId, task);
        for (uint256 other = first; other < first + count; ++other) {
            TaskState storage state = _tasks[other].state;
            if (other == taskId || state.round > number) continue;
            bool isOpen = state.phase == Phase.Committing && state.deadline != 0;
            if (isOpen || state.phase < Phase.Committing) return other;
        }
        return 0;
    }

    /// @dev The viable cohorts that have enough hospitals in `present`, and all their members.
    function _viable(Task storage task, Round storage round, uint256 number, uint256 present)
        private
        view
        returns (uint256 viable, uint256 members)
    {
        uint256 before = round.viableCohorts;
        for (uint256 cohort = 0; before >> cohort != 0; ++cohort) {
            if (!before.has(cohort)) continue;
            uint256 cohortMembers_ = task.cohorts[Keys.entry(number, cohort)].members;
            if ((cohortMembers_ & present).count() < _least(task, cohortMembers_.count())) continue;
            viable = viable.with(cohort);
            members |= cohortMembers_;
        }
    }

    /// @dev The least number of hospitals for a sum in a cohort of this size. Masked sums need two thirds of the
    ///      cohort: with fewer nobody can remove the masks, and honest hospitals refuse to help
    ///      (docs/secure-aggregation.md).
    function _least(Task storage task, uint256 size) private view returns (uint256) {
        uint256 minimum = task.params.minCohortSize;
        return task.params.masked ? Math.max(minimum, Math.ceilDiv(2 * size, 3)) : minimum;
    }

    function _load(Task storage task, uint256 number, uint256 cohort) internal view returns (Running memory running) {
        running.cohort = cohort;
        running.members = task.cohorts[Keys.entry(number, cohort)].members;
        running.hashes = new bytes32[](task.rounds[number].blobs);
        for (uint256 blob = 0; blob < running.hashes.length; ++blob) {
            running.hashes[blob] = task.commitments[Keys.entry(number, cohort, blob)];
        }
    }

    function _store(Task storage task, uint256 number, Running memory running) internal {
        for (uint256 blob = 0; blob < running.hashes.length; ++blob) {
            task.commitments[Keys.entry(number, running.cohort, blob)] = running.hashes[blob];
        }
    }

    /// @dev Adds a hospital's commitments to its cohort's. The caller stores them, and checks that the hospital commits
    ///      once.
    function _record(Running memory running, address hospital, uint256 index, bytes32[] calldata pointHashes)
        internal
        pure
    {
        if (!running.members.has(index)) revert NotInCohort(hospital, running.cohort);
        bytes32[] memory hashes = running.hashes;
        if (pointHashes.length != hashes.length) revert PointsWrong(pointHashes.length * 32, hashes.length * 32);
        for (uint256 blob = 0; blob < hashes.length; ++blob) {
            hashes[blob] = RunningHash.extend(hashes[blob], index, pointHashes[blob]);
        }
    }
}
