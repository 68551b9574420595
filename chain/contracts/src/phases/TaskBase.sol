// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {IBeacon} from "../interfaces/IBeacon.sol";
import {IStaking} from "../interfaces/IStaking.sol";
import {ITaskTypes} from "../interfaces/ITaskTypes.sol";
import {Bits} from "../libraries/Bits.sol";
import {Slashes} from "../libraries/Slashes.sol";
import {Bond, Keys, Membership, Round, Task} from "../types/Task.sol";

/// @title What all phases share: storage, guards, the passage from phase to phase and round to round, and money.
/// @notice A void round pays nobody and the task goes on with the next. A task ends after its last round, when its
///         operator stops it, when fewer hospitals are active than one cohort takes, or when its statistics round is
///         void, since without statistics nothing can be standardised.
abstract contract TaskBase is ITaskTypes {
    using Bits for uint256;
    using Slashes for Bond;

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

    function _member(uint256 taskId, Task storage task, IStaking.Role role, uint256 among)
        internal
        view
        returns (uint256 index)
    {
        return _member(taskId, task, msg.sender, role, among);
    }

    /// @dev The account's index, if it is in `among` and of that role.
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

    /// @dev The statistics are judged by nobody, so there is nobody to be tested.
    function _hasCanaries(Task storage task, uint256 number) internal view returns (bool) {
        return number != 0 && task.params.canaries;
    }

    // Passage.

    function _startPhase(uint256 taskId, Task storage task, Phase phase, uint256 window) internal {
        uint64 deadline = window == 0 ? 0 : uint64(block.timestamp + window);
        task.state.phase = phase;
        task.state.deadline = deadline;
        emit PhaseStarted(taskId, task.state.round, phase, deadline);
    }

    /// @dev The joining phase is over: go on with enough of everybody, else end.
    function _closeJoining(uint256 taskId, Task storage task) internal {
        bool enough = task.state.aggregatorJoined && task.hospitals.length >= task.params.minHospitals
            && task.voters.length >= task.params.minVoters;
        if (enough) _startStatistics(taskId, task);
        else _end(taskId, task);
    }

    /// @dev Forming and Drawing last until the beacon's value is proven.
    function _awaitBeacon(uint256 taskId, Task storage task, Phase phase) internal {
        task.rounds[task.state.round].beaconRequest = beacon.request();
        _startPhase(taskId, task, phase, 0);
    }

    function _beaconSeed(Round storage round, bytes calldata proof) internal view returns (bytes32) {
        return beacon.seed(round.beaconRequest, proof);
    }

    /// @dev Everybody who joined is in the statistics round's one cohort.
    function _startStatistics(uint256 taskId, Task storage task) internal {
        Round storage round = task.rounds[0];
        round.cohorts = 1;
        round.blobs = uint8(task.params.statisticsBlobs);
        round.members = task.state.activeHospitals;
        round.pending = task.state.activeHospitals;
        task.cohorts[Keys.entry(0, 0)].members = task.state.activeHospitals;
        _startPhase(taskId, task, Phase.Committing, task.params.commitWindow);
    }

    function _settled(uint256 taskId, Task storage task, int64[] memory medians, uint256 accepted) internal {
        uint256 number = task.state.round;
        Round storage round = task.rounds[number];
        round.outcome = Outcome.Settled;
        round.medians = medians;
        round.acceptedCohorts = uint64(accepted);
        emit RoundSettled(taskId, number, medians, accepted);
        _nextRound(taskId, task);
    }

    function _void(uint256 taskId, Task storage task, VoidReason reason) internal {
        uint256 number = task.state.round;
        Round storage round = task.rounds[number];
        round.outcome = Outcome.Void;
        round.voidReason = reason;
        emit RoundVoided(taskId, number, reason);
        if (number == 0) _end(taskId, task);
        else _nextRound(taskId, task);
    }

    function _nextRound(uint256 taskId, Task storage task) private {
        // Who stops after the statistics has had them for nothing: one round is paid for.
        bool isLast = task.state.round == task.params.rounds || (task.state.stopping && task.state.round > 0);
        if (isLast || task.state.activeHospitals.count() < task.params.minCohortSize) return _end(taskId, task);
        bool isDealt = task.rounds[task.state.round].seatSeed != 0;
        ++task.state.round;
        // The value that drew the last round's seats deals these cohorts, too: it was asked for when nobody could change
        // any more who is active. A round that ended before its seats were drawn leaves none.
        if (isDealt) _startPhase(taskId, task, Phase.Forming, 0);
        else _awaitBeacon(taskId, task, Phase.Forming);
    }

    function _end(uint256 taskId, Task storage task) internal {
        uint256 refund = task.state.poolLeft;
        task.state.poolLeft = 0;
        _startPhase(taskId, task, Phase.Ended, 0);
        emit TaskEnded(taskId, refund);
        _credit(task.state.operator, refund);
    }

    /// @dev An absent hospital sits out until it resumes.
    function _markAbsent(uint256 taskId, Task storage task, uint256 absent) internal {
        if (absent == 0) return;
        task.state.activeHospitals &= ~absent;
        for (uint256 i = 0; absent >> i != 0; ++i) {
            if (absent.has(i)) emit HospitalAbsent(taskId, task.state.round, task.hospitals[i].node);
        }
    }

    // Money.

    /// @dev Before the task moves on: what is left of the pool may go back to the operator then.
    function _payBounty(uint256 taskId, Task storage task) internal {
        uint128 left = task.state.poolLeft;
        uint128 amount = uint128(Math.min(task.params.tickBounty, left));
        if (amount == 0) return;
        task.state.poolLeft = left - amount;
        emit BountyPaid(taskId, task.state.round, msg.sender, amount);
        _credit(msg.sender, amount);
    }

    function _blame(uint256 taskId, Task storage task, SlashReason fault, VoidReason reason) internal {
        _slash(taskId, task, fault, 0);
        _void(taskId, task, reason);
    }

    function _credit(address account, uint256 amount) internal {
        _claimable[account] += amount;
        _totalClaimable += amount;
    }

    function _slashAll(uint256 taskId, Task storage task, SlashReason reason, uint256 guilty) internal {
        for (uint256 i = 0; guilty >> i != 0; ++i) {
            if (guilty.has(i)) _slash(taskId, task, reason, i);
        }
    }

    /// @param index among those of the role that the fault is of; 0 for the aggregator.
    function _slash(uint256 taskId, Task storage task, SlashReason reason, uint256 index) internal {
        (IStaking.Role role, uint256 full) = Slashes.rule(task.params, reason);
        (address node, Bond storage bond) = _bondOf(task, role, index);
        uint256 amount = Math.min(full, bond.left);
        if (amount == 0) return;
        uint256 burnt = staking.slash(node, role, amount);
        bond.note(burnt, task.state.round);
        emit Slashed(taskId, task.state.round, node, burnt, reason);
        if (bond.left > 0) return;
        if (role == IStaking.Role.Hospital) task.state.activeHospitals = task.state.activeHospitals.without(index);
        else if (role == IStaking.Role.Voter) task.state.activeVoters = task.state.activeVoters.without(index);
    }

    function _bondOf(Task storage task, IStaking.Role role, uint256 index)
        internal
        view
        returns (address node, Bond storage bond)
    {
        if (role == IStaking.Role.Hospital) return (task.hospitals[index].node, task.hospitals[index].bond);
        if (role == IStaking.Role.Voter) return (task.voters[index].node, task.voters[index].bond);
        return (task.params.aggregator, task.aggregatorBond);
    }
}
