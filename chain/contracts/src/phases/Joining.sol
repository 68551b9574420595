// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IStaking} from "../interfaces/IStaking.sol";
import {ITaskRegistry} from "../interfaces/ITaskRegistry.sol";
import {Bits} from "../libraries/Bits.sol";
import {Payouts} from "../libraries/Payouts.sol";
import {Pools} from "../libraries/Pools.sol";
import {TaskRules} from "../libraries/TaskRules.sol";
import {TransportKeys} from "../libraries/TransportKeys.sol";
import {Bond, HospitalEntry, Membership, Task, VoterEntry} from "../types/Task.sol";
import {TaskBase} from "./TaskBase.sol";

/// @title Joining and leaving: bonds, additions to a pool, and claims.
abstract contract Joining is TaskBase, ITaskRegistry {
    using Bits for uint256;
    using SafeERC20 for IERC20;

    function joinAsAggregator(uint256 taskId) external {
        Task storage task = _joinable(taskId);
        _requireAggregator(task);
        uint128 bond = task.params.aggregatorBond;
        task.state.aggregatorJoined = true;
        task.aggregatorBond.left = bond;
        emit AggregatorJoined(taskId, msg.sender);
        _join(taskId, task, IStaking.Role.Aggregator, 0, bond);
    }

    function joinAsHospital(
        uint256 taskId,
        uint256 rows,
        bytes calldata transportKey,
        bytes calldata transportProof,
        bytes32 encryptionKey
    ) external {
        Task storage task = _joinable(taskId);
        if (rows == 0) revert RowsAreZero();
        if (encryptionKey == 0 && task.params.masked) revert EncryptionKeyMissing(msg.sender);
        uint256 index = task.hospitals.length;
        if (index == task.params.maxHospitals) revert TaskFull(taskId);
        _requireOneShard(taskId, task);
        _takeTransportKey(taskId, task, transportKey, transportProof);
        uint128 bond = task.params.hospitalBond;
        uint32 weight = TaskRules.weight(rows, task.params.rowsPerWeight, task.params.maxWeight);
        task.hospitals.push(HospitalEntry({node: msg.sender, weight: weight, bond: Bond(bond, 0, 0)}));
        task.state.activeHospitals = task.state.activeHospitals.with(index);
        emit HospitalJoined(taskId, msg.sender, index, weight, transportKey, encryptionKey);
        _join(taskId, task, IStaking.Role.Hospital, index, bond);
    }

    function joinAsVoter(uint256 taskId) external {
        Task storage task = _joinable(taskId);
        bytes32 keyHash = staking.voterKeyHash(msg.sender);
        if (keyHash == 0) revert VoterKeyMissing(msg.sender);
        uint256 index = task.voters.length;
        if (index == task.params.maxVoters) revert TaskFull(taskId);
        uint128 bond = task.params.voterBond;
        task.voters.push(VoterEntry({node: msg.sender, bond: Bond(bond, 0, 0), keyHash: keyHash}));
        task.state.activeVoters = task.state.activeVoters.with(index);
        emit VoterJoined(taskId, msg.sender, index);
        _join(taskId, task, IStaking.Role.Voter, index, bond);
    }

    function fund(uint256 taskId, uint128 amount) external {
        Task storage task = _in(taskId, Phase.Joining);
        _requireOperator(task);
        if (amount == 0) revert AmountIsZero();
        TaskParams storage terms = task.params;
        uint128 pool = terms.pool + amount; // equals `poolLeft`: nothing is paid while others join
        TaskRules.requireOutweighed(
            terms.aggregatorBond, terms.notPublishedSlashBps, pool, terms.rounds, terms.aggregatorShareBps
        );
        (terms.pool, task.state.poolLeft) = (pool, pool);
        emit TaskFunded(taskId, msg.sender, amount, pool);
        token.safeTransferFrom(msg.sender, address(this), amount);
    }

    function stop(uint256 taskId) external {
        Task storage task = _known(taskId);
        _requireOperator(task);
        if (task.state.stopping || task.state.phase == Phase.Ended) revert AlreadyStopped(taskId);
        task.state.stopping = true;
        emit TaskStopped(taskId, task.state.round);
        if (task.state.phase == Phase.Joining) _end(taskId, task);
    }

    /// @inheritdoc ITaskRegistry
    /// @dev Refused while the seed of the next cohorts is requested or known: a hospital that knows it could influence
    ///      the cohorts by taking part or not.
    function resume(uint256 taskId) external {
        Task storage task = _known(taskId);
        Phase phase = task.state.phase;
        bool isOpen = phase == Phase.Committing || phase == Phase.Uploading || phase == Phase.Publishing;
        if (!isOpen) revert WrongPhase(taskId, phase, Phase.Committing);
        uint256 index = _member(taskId, task, msg.sender, IStaking.Role.Hospital, type(uint256).max);
        if (task.hospitals[index].bond.left == 0) revert NotAMember(taskId, msg.sender);
        if (task.state.activeHospitals.has(index)) revert AlreadyJoined(taskId, msg.sender);
        task.state.activeHospitals = task.state.activeHospitals.with(index);
        emit HospitalResumed(taskId, msg.sender);
    }

    function claim() external returns (uint256 amount) {
        amount = _claimable[msg.sender];
        if (amount == 0) revert NothingToClaim(msg.sender);
        _claimable[msg.sender] = 0;
        _totalClaimable -= amount;
        emit Claimed(msg.sender, amount);
        token.safeTransfer(msg.sender, amount);
    }

    function releaseBond(uint256 taskId, address account) external {
        Task storage task = _in(taskId, Phase.Ended);
        Membership memory member = task.memberships[account];
        if (!member.joined) revert NothingToRelease(taskId, account);
        (, Bond storage bond) = _bondOf(task, member.role, member.index);
        uint128 left = bond.left;
        if (left == 0) revert NothingToRelease(taskId, account);
        bond.left = 0; // the record of its last slash stays, for `explain`
        emit BondReleased(taskId, account, left);
        staking.unlock(account, member.role, left);
    }

    function transportMessage(uint256 taskId, address hospital, bytes calldata transportKey)
        external
        view
        returns (bytes memory)
    {
        return TransportKeys.message(taskId, hospital, transportKey);
    }

    /// @dev All keys of a task differ, so that a key belongs to one hospital.
    function _takeTransportKey(uint256 taskId, Task storage task, bytes calldata key, bytes calldata proof) private {
        if (!TransportKeys.isHeldBy(taskId, msg.sender, key, proof)) revert TransportKeyInvalid(msg.sender);
        bytes32 hash = keccak256(key);
        if (task.transportKeys[hash]) revert TransportKeyTaken(msg.sender);
        task.transportKeys[hash] = true;
    }

    /// @dev A hospital's rows count once in a model. Voters and the aggregator may join several of its shards.
    function _requireOneShard(uint256 taskId, Task storage task) private view {
        (uint256 first, uint256 count) = _shards(taskId, task);
        for (uint256 other = first; other < first + count; ++other) {
            Membership storage member = _tasks[other].memberships[msg.sender];
            if (member.joined && member.role == IStaking.Role.Hospital) revert AlreadyJoined(other, msg.sender);
        }
    }

    function _requireOperator(Task storage task) private view {
        if (msg.sender != task.state.operator) revert NotOperator(msg.sender);
    }

    function _joinable(uint256 taskId) private view returns (Task storage task) {
        task = _in(taskId, Phase.Joining);
        _requireOpen(taskId, task);
        if (task.memberships[msg.sender].joined) revert AlreadyJoined(taskId, msg.sender);
    }

    /// @dev Locks the bond. The last node to join ends the phase.
    function _join(uint256 taskId, Task storage task, IStaking.Role role, uint256 index, uint256 bond) private {
        task.memberships[msg.sender] = Membership({joined: true, role: role, index: uint8(index)});
        staking.lock(msg.sender, role, bond);
        _requireOwnStake(role);
        bool complete = task.state.aggregatorJoined && task.hospitals.length == task.params.maxHospitals
            && task.voters.length == task.params.maxVoters;
        if (complete) _startStatistics(taskId, task);
    }

    /// @dev The owner must hold its own part of the stake that its bonds lock. Staking enforces it when stake leaves.
    function _requireOwnStake(IStaking.Role role) private view {
        (, uint256 own,) = staking.positionOf(msg.sender, msg.sender, role);
        uint256 wanted = Payouts.portion(staking.stakeOf(msg.sender, role).locked, Pools.OWN_BPS);
        if (own < wanted) revert IStaking.OwnStakeInsufficient(msg.sender, role, own, wanted);
    }
}
