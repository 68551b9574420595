// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {ConsiliumToken} from "./ConsiliumToken.sol";
import {IStaking} from "./interfaces/IStaking.sol";
import {Bls12381} from "./libraries/Bls12381.sol";
import {Tickets} from "./libraries/Tickets.sol";

/// @title Stakes and voters' keys.
/// @notice Locked stake answers for behaviour in tasks, and only free stake can be unbonded: what answers for
///         something is slashed before it can be free, so stake that leaves owes nothing.
contract Staking is IStaking {
    using SafeERC20 for ConsiliumToken;
    using SafeCast for uint256;

    ConsiliumToken public immutable token;
    /// @notice Seconds between the start of unbonding and withdrawal.
    uint64 public immutable unbondingPeriod;
    /// @notice All stake held: free, locked and unbonding.
    uint256 public totalStaked;
    /// @notice The one contract that may lock, unlock and slash.
    address public tasks;
    /// @inheritdoc IStaking
    mapping(address voter => bytes32) public voterKeyHash;

    address private immutable _deployer;
    mapping(address node => mapping(Role role => Stake)) private _stakes;

    constructor(ConsiliumToken token_, uint64 unbondingPeriod_) {
        token = token_;
        unbondingPeriod = unbondingPeriod_;
        _deployer = msg.sender;
    }

    modifier onlyTasks() {
        if (msg.sender != tasks) revert OnlyTasks(msg.sender);
        _;
    }

    /// @notice Names the task contract, once, by the deployer: the two contracts need each other's address.
    function setTasks(address tasks_) external {
        if (msg.sender != _deployer) revert OnlyDeployer(msg.sender);
        if (tasks != address(0)) revert TasksAlreadySet(tasks);
        tasks = tasks_;
    }

    /// @inheritdoc IStaking
    function stake(Role role, uint256 amount) external {
        if (amount == 0) revert AmountIsZero();
        _stakes[msg.sender][role].free += amount.toUint128();
        totalStaked += amount;
        emit Staked(msg.sender, role, amount);
        token.safeTransferFrom(msg.sender, address(this), amount);
    }

    /// @inheritdoc IStaking
    function startUnbonding(Role role, uint256 amount) external {
        if (amount == 0) revert AmountIsZero();
        Stake storage own = _stakes[msg.sender][role];
        if (own.unbonding > 0) revert UnbondingInProgress(own.unbonding, own.withdrawableAt);
        _takeFree(own, msg.sender, role, amount);
        own.unbonding = uint128(amount);
        own.withdrawableAt = uint64(block.timestamp) + unbondingPeriod;
        emit UnbondingStarted(msg.sender, role, amount, own.withdrawableAt);
    }

    /// @inheritdoc IStaking
    function withdraw(Role role) external {
        Stake storage own = _stakes[msg.sender][role];
        uint256 amount = own.unbonding;
        if (amount == 0) revert NothingToWithdraw(msg.sender, role);
        if (block.timestamp < own.withdrawableAt) revert StillUnbonding(own.withdrawableAt);
        own.unbonding = 0;
        own.withdrawableAt = 0;
        totalStaked -= amount;
        emit Withdrawn(msg.sender, role, amount);
        token.safeTransfer(msg.sender, amount);
    }

    /// @inheritdoc IStaking
    /// @dev The message names the sender, so that nobody can register another's key with a copied proof.
    function registerVoterKey(bytes calldata publicKey, bytes calldata proofOfPossession) external {
        if (publicKey.length != Bls12381.G2_LENGTH) revert VoterKeyMalformed(publicKey.length);
        bytes memory message = abi.encode(block.chainid, address(this), msg.sender, publicKey);
        if (!Tickets.verify(publicKey, proofOfPossession, message, Tickets.POSSESSION_DOMAIN)) {
            revert ProofOfPossessionInvalid(msg.sender);
        }
        voterKeyHash[msg.sender] = keccak256(publicKey);
        emit VoterKeyRegistered(msg.sender, publicKey);
    }

    /// @inheritdoc IStaking
    function lock(address node, Role role, uint256 amount) external onlyTasks {
        Stake storage own = _stakes[node][role];
        _takeFree(own, node, role, amount);
        own.locked += uint128(amount);
        emit StakeLocked(node, role, amount);
    }

    /// @inheritdoc IStaking
    function unlock(address node, Role role, uint256 amount) external onlyTasks {
        Stake storage own = _stakes[node][role];
        own.locked -= amount.toUint128();
        own.free += uint128(amount);
        emit StakeUnlocked(node, role, amount);
    }

    /// @inheritdoc IStaking
    function slash(address node, Role role, uint256 amount) external onlyTasks returns (uint256 burnt) {
        Stake storage own = _stakes[node][role];
        burnt = amount < own.locked ? amount : own.locked;
        own.locked -= uint128(burnt);
        totalStaked -= burnt;
        emit StakeSlashed(node, role, burnt);
        token.burn(burnt);
    }

    /// @inheritdoc IStaking
    function verifyTicket(bytes calldata publicKey, bytes calldata ticket, bytes calldata message)
        external
        view
        returns (bool)
    {
        return Tickets.verify(publicKey, ticket, message, Tickets.TICKET_DOMAIN);
    }

    /// @inheritdoc IStaking
    function stakeOf(address node, Role role) external view returns (Stake memory) {
        return _stakes[node][role];
    }

    function _takeFree(Stake storage own, address node, Role role, uint256 amount) private {
        if (own.free < amount) revert StakeInsufficient(node, role, own.free, amount);
        own.free -= uint128(amount);
    }
}
