// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {ConsiliumToken} from "../ConsiliumToken.sol";
import {IBeacon} from "../interfaces/IBeacon.sol";
import {IStaking} from "../interfaces/IStaking.sol";
import {ITaskTypes} from "../interfaces/ITaskTypes.sol";
import {Bits} from "../libraries/Bits.sol";
import {TaskRules} from "../libraries/TaskRules.sol";
import {Bond, HospitalEntry, Keys, Membership, Round, Task, VoterEntry} from "../types/Task.sol";

/// @title The shared parts of all phases: storage, guards, phase changes and money.
abstract contract TaskBase is ITaskTypes {
    using Bits for uint256;

    IERC20 public immutable token;
    IStaking public immutable staking;
    IBeacon public immutable beacon;

    uint256 internal _taskCount;
    uint256 internal _totalClaimable; // refunds and bounties; rewards are in Staking
    mapping(address account => uint256) internal _claimable;
    mapping(uint256 taskId => Task) internal _tasks;
    bool internal _proposalsStopped;

    constructor(IERC20 token_, IStaking staking_, IBeacon beacon_) {
        token = token_;
        staking = staking_;
        beacon = beacon_;
    }

    // Guards.

    function _known(uint256 taskId) internal view returns (Task storage task) {
        task = _tasks[taskId];
        if (task.state.phase == Phase.None) revert TaskUnknown(taskId);
    }

    function _in(uint256 taskId, Phase wanted) internal view returns (Task storage task) {
        task = _known(taskId);
        Phase actual = task.state.phase;
        if (actual != wanted) revert WrongPhase(taskId, actual, wanted);
    }

    function _in(uint256 taskId, Phase wanted, uint256 number)
        internal
        view
        returns (Task storage task, Round storage round)
    {
        task = _in(taskId, wanted);
        uint256 current = task.state.round;
        if (current != number) revert WrongRound(taskId, current, number);
        round = task.rounds[number];
    }

    function _open(uint256 taskId, Phase wanted, uint256 number)
        internal
        view
        returns (Task storage task, Round storage round)
    {
        (task, round) = _in(taskId, wanted, number);
        _requireOpen(taskId, task);
    }

    function _requireOpen(uint256 taskId, Task storage task) internal view {
        if (block.timestamp > task.state.deadline) revert PhaseOver(taskId, task.state.deadline);
    }

    function _requireOver(uint256 taskId, Task storage task) internal view {
        uint64 deadline = task.state.deadline;
        if (deadline == 0 || block.timestamp <= deadline) revert PhaseNotOver(taskId, deadline);
    }

    function _requireAggregator(Task storage task) internal view {
        if (msg.sender != task.params.aggregator) revert NotAggregator(msg.sender);
    }

    /// @dev The account's index. Reverts unless it has that role and is in `among`.
    function _member(uint256 taskId, Task storage task, address account, IStaking.Role role, uint256 among)
        internal
        view
        returns (uint256 index)
    {
        Membership memory member = task.memberships[account];
        index = member.index;
        bool isIn = member.joined && member.role == role && among.has(index);
        if (!isIn) revert NotAMember(taskId, account);
    }

    /// @dev Voters do not judge the statistics, so they need no test there.
    function _hasDecoys(Task storage task, uint256 number) internal view returns (bool) {
        return number != 0 && task.params.decoys;
    }

    /// @return first the number of a model's first shard. @return count its shards; 0 if the task trains it alone.
    function _shards(uint256 taskId, Task storage task) internal view returns (uint256 first, uint256 count) {
        uint256 shard = task.state.shard;
        if (shard != 0) (first, count) = (taskId + 1 - shard, task.params.shards);
    }

    // Phase changes.

    function _startPhase(uint256 taskId, Task storage task, Phase phase, uint256 window) internal {
        uint64 deadline = window == 0 ? 0 : uint64(block.timestamp + window);
        task.state.phase = phase;
        task.state.deadline = deadline;
        emit PhaseStarted(taskId, task.state.round, phase, deadline);
    }

    /// @dev Ends the joining phase. The task goes on if enough nodes have joined, and ends otherwise.
    function _closeJoining(uint256 taskId, Task storage task) internal {
        bool enough = task.state.aggregatorJoined && task.hospitals.length >= task.params.minHospitals
            && task.voters.length >= task.params.minVoters;
        if (enough) _startStatistics(taskId, task);
        else _end(taskId, task);
    }

    /// @dev Starts Forming or Drawing, which last until the beacon's value is proven. The deadline frees stake if the
    ///      beacon dies.
    function _awaitBeacon(uint256 taskId, Task storage task, Phase phase) internal {
        task.rounds[task.state.round].beaconRequest = uint128(beacon.request());
        _startPhase(taskId, task, phase, TaskRules.BEACON_WINDOW);
    }

    /// @dev All hospitals are in the statistics round's one cohort.
    function _startStatistics(uint256 taskId, Task storage task) internal {
        Round storage round = task.rounds[0];
        round.cohorts = 1;
        round.blobs = uint8(task.params.statisticsBlobs);
        round.members = task.state.activeHospitals;
        round.pending = task.state.activeHospitals;
        task.cohorts[Keys.entry(0, 0)].members = task.state.activeHospitals;
        _startPhase(taskId, task, Phase.Committing, task.params.commitWindow);
    }

    function _end(uint256 taskId, Task storage task) internal {
        uint256 burnt = task.state.forfeited;
        uint256 refund = task.state.poolLeft - burnt;
        (task.state.poolLeft, task.state.forfeited) = (0, 0);
        _startPhase(taskId, task, Phase.Ended, 0);
        emit TaskEnded(taskId, refund, burnt);
        _credit(task.state.operator, refund);
        if (burnt > 0) ConsiliumToken(address(token)).burn(burnt);
    }

    /// @dev Hospitals marked absent sit out until they resume.
    function _markAbsent(uint256 taskId, Task storage task, uint256 absent) internal {
        if (absent == 0) return;
        task.state.activeHospitals &= ~absent;
        for (uint256 i = 0; absent >> i != 0; ++i) {
            if (absent.has(i)) emit HospitalAbsent(taskId, task.state.round, task.hospitals[i].node);
        }
    }

    // Money.

    /// @dev Called before the phase changes, because the rest of the pool may go back to the operator then.
    function _payBounty(uint256 taskId, Task storage task) internal {
        uint128 left = task.state.poolLeft;
        uint128 amount = uint128(Math.min(task.params.tickBounty, left - task.state.forfeited));
        if (amount == 0) return;
        task.state.poolLeft = left - amount;
        emit BountyPaid(taskId, task.state.round, msg.sender, amount);
        _credit(msg.sender, amount);
    }

    function _credit(address account, uint256 amount) internal {
        _claimable[account] += amount;
        _totalClaimable += amount;
    }

    function _bondOf(Task storage task, IStaking.Role role, uint256 index)
        internal
        view
        returns (address node, Bond storage bond)
    {
        if (role == IStaking.Role.Aggregator) return (task.params.aggregator, task.aggregatorBond);
        if (role == IStaking.Role.Voter) {
            VoterEntry storage voter = task.voters[index];
            return (voter.node, voter.bond);
        }
        HospitalEntry storage hospital = task.hospitals[index];
        return (hospital.node, hospital.bond);
    }
}
