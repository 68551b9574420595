// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ConsiliumToken} from "./ConsiliumToken.sol";
import {IStaking} from "./interfaces/IStaking.sol";
import {Payouts} from "./libraries/Payouts.sol";
import {Pools} from "./libraries/Pools.sol";
import {Connected} from "./staking/Connected.sol";
import {VoterKeys} from "./staking/VoterKeys.sol";
import {Pool, Position} from "./types/Pool.sol";

/// @title Staking, delegation and rewards. The arithmetic is in `Pools`.
/// @notice The contract counts what it owes, and never reads the token's balance: tokens sent here by plain transfer
///         change nothing. The cost of each function does not depend on the number of delegators.
/// @dev Tokens are pulled in before they are counted. The token is fixed at deployment and calls nobody back.
contract Staking is VoterKeys, Connected {
    using SafeERC20 for ConsiliumToken;
    using Pools for Pool;
    using Pools for Position;

    ConsiliumToken public immutable token;
    /// @inheritdoc IStaking
    uint32 public immutable unbondingPeriod;
    /// @inheritdoc IStaking
    uint32 public immutable vestingPeriod;
    /// @inheritdoc IStaking
    uint96 public totalStaked;

    mapping(address node => mapping(Role role => Pool)) private _pools;
    mapping(address node => mapping(Role role => mapping(address delegator => Position))) private _positions;
    mapping(address node => mapping(Role role => mapping(uint256 generation => uint256))) private _lastIndexX48;
    mapping(address delegator => Request[]) private _requests;
    mapping(address owner => mapping(Role role => mapping(uint256 generation => uint256 shares))) private _ownUnbonding;
    mapping(address node => mapping(Role role => Withdrawal)) private _withdrawals;

    /// @param unbondingPeriod_ Seconds, at least `vestingPeriod_`: stake can be slashed for as long as rewards can.
    /// @param vestingPeriod_ Seconds; the time within which a settled round can be challenged.
    constructor(ConsiliumToken token_, uint32 unbondingPeriod_, uint32 vestingPeriod_) {
        if (vestingPeriod_ == 0 || unbondingPeriod_ < vestingPeriod_) {
            revert PeriodsInvalid(unbondingPeriod_, vestingPeriod_);
        }
        uint256 supply = token_.totalSupply();
        if (supply > type(uint96).max) revert SupplyTooLarge(supply);
        token = token_;
        unbondingPeriod = unbondingPeriod_;
        vestingPeriod = vestingPeriod_;
    }

    // Owners.

    function register(Role role, uint256 commissionBps, uint256 amount) external {
        if (commissionBps > Payouts.BASIS_POINTS) revert CommissionTooHigh(commissionBps);
        Pool storage pool = _pools[msg.sender][role];
        if (pool.vestedAt != 0) revert AlreadyRegistered(msg.sender, role);
        pool.vestedAt = uint40(block.timestamp);
        // Only differences of the index count. It starts at one, so that the owner pays for its word, and not the
        // settler.
        pool.indexX48 = 1;
        pool.commissionBps = uint16(commissionBps);
        emit NodeRegistered(msg.sender, role, commissionBps);
        if (amount > 0) _delegate(msg.sender, role, amount);
    }

    function setCommission(Role role, uint256 commissionBps) external {
        if (commissionBps > Payouts.BASIS_POINTS) revert CommissionTooHigh(commissionBps);
        Pool memory pool = _accrued(msg.sender, role);
        bool isRaise = commissionBps > pool.commissionBps;
        uint256 effectiveAt = block.timestamp + (isRaise ? unbondingPeriod : 0);
        if (isRaise) pool.nextCommissionBps = uint16(commissionBps);
        else pool.commissionBps = uint16(commissionBps);
        pool.nextCommissionAt = isRaise ? uint40(effectiveAt) : 0;
        pool.store(_pools[msg.sender][role]);
        emit CommissionSet(msg.sender, role, commissionBps, effectiveAt);
    }

    function setWithdrawalAddress(address node, Role role, address to) external {
        Pool storage pool = _pools[node][role];
        if (pool.vestedAt == 0) revert NodeUnknown(node, role);
        address current = withdrawalAddressOf(node, role).current;
        _requireSender(current == address(0) ? node : current, node, role);
        if (to == address(0) || to == node || to == address(this) || to == address(token) || to == tasks) {
            revert WithdrawalAddressInvalid(to);
        }
        bool isChange = current != address(0) && to != current;
        uint256 effectiveAt = block.timestamp + (isChange ? unbondingPeriod : 0);
        _withdrawals[node][role] =
            isChange ? Withdrawal(current, uint40(effectiveAt), to) : Withdrawal(to, 0, address(0));
        pool.hasWithdrawalAddress = true;
        emit WithdrawalAddressSet(node, role, to, effectiveAt);
    }

    function startUnbondingFor(address node, Role role, uint256 shares) external returns (uint256 requestId) {
        _requireSender(_payee(_pools[node][role], node, role, node), node, role);
        requestId = _startUnbonding(node, node, role, shares);
    }

    function withdrawFor(address node, uint256 requestId) external returns (uint256 amount) {
        address payee;
        (amount, payee) = _unbond(node, requestId);
        if (payee != msg.sender) revert PaidElsewhere(requestId, payee);
        _payStake(payee, amount);
    }

    function claimFor(address node, Role role) external returns (uint256 amount) {
        address payee;
        (amount, payee) = _takeRewards(node, node, role);
        _requireSender(payee, node, role);
        _payRewards(payee, amount);
    }

    // Delegators.

    function delegate(address node, Role role, uint256 amount) external {
        _delegate(node, role, amount);
    }

    function delegateWithPermit(
        address node,
        Role role,
        uint256 amount,
        uint256 deadline,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        // A refused permit may have been used by somebody else before. The transfer checks the allowance anyway.
        try token.permit(msg.sender, address(this), amount, deadline, v, r, s) {} catch {}
        _delegate(node, role, amount);
    }

    function startUnbonding(address node, Role role, uint256 shares) external returns (uint256 requestId) {
        requestId = _startUnbonding(msg.sender, node, role, shares);
    }

    function withdraw(uint256 requestId) external returns (uint256 amount) {
        address payee;
        (amount, payee) = _unbond(msg.sender, requestId);
        _payStake(payee, amount);
    }

    function redelegate(uint256 requestId, address node, Role role) external returns (uint256 amount) {
        address payee;
        (amount, payee) = _unbond(msg.sender, requestId);
        // The sender could withdraw it from another pool, or hold back an owner that leaves.
        if (payee != msg.sender) revert PaidElsewhere(requestId, payee);
        _join(node, role, amount);
    }

    function claim(address node, Role role) external returns (uint256 amount) {
        address payee;
        (amount, payee) = _takeRewards(msg.sender, node, role);
        _payRewards(payee, amount);
    }

    function claimMany(NodeId[] calldata nodes) external returns (uint256 amount) {
        uint256 own;
        for (uint256 i = 0; i < nodes.length; ++i) {
            (uint256 taken, address payee) = _takeRewards(msg.sender, nodes[i].node, nodes[i].role);
            amount += taken;
            if (payee == msg.sender) own += taken;
            else if (taken > 0) _payRewards(payee, taken);
        }
        if (own > 0 || amount == 0) _payRewards(msg.sender, own);
    }

    // Tasks.

    function lock(address node, Role role, uint256 amount) external onlyTasks {
        Pool memory pool = _pools[node][role];
        uint256 free = pool.free();
        if (free < amount) revert StakeInsufficient(node, role, free, amount);
        uint256 locked = pool.locked + amount;
        _pools[node][role].locked = uint96(locked);
        emit StakeLocked(node, role, amount, locked);
    }

    function unlock(address node, Role role, uint256 amount) external onlyTasks {
        Pool storage pool = _pools[node][role];
        uint256 locked = pool.locked;
        if (locked < amount) revert LockedInsufficient(node, role, locked, amount);
        pool.locked = uint96(locked - amount);
        emit StakeUnlocked(node, role, amount, locked - amount);
    }

    function slash(address node, Role role, uint256 amount) external onlyTasks returns (uint256 burnt) {
        Pool memory pool = _accrued(node, role);
        burnt = amount < pool.locked ? amount : pool.locked;
        if (burnt == 0) return 0;
        uint256 generation = pool.generation;
        uint256 forfeited = pool.slash(burnt);
        pool.store(_pools[node][role]);
        totalStaked -= uint96(burnt);
        emit StakeSlashed(node, role, burnt, forfeited, pool.assets, pool.shares);
        if (pool.generation != generation) {
            _lastIndexX48[node][role][generation] = pool.indexX48;
            emit PoolWiped(node, role, pool.generation);
        }
        token.burn(burnt + forfeited);
    }

    function reward(Reward[] calldata rewards) external onlyTasks {
        uint256 total;
        for (uint256 i = 0; i < rewards.length; ++i) {
            (address node, Role role, uint256 amount) = (rewards[i].node, rewards[i].role, rewards[i].amount);
            if (amount == 0) continue;
            Pool memory pool = _accrued(node, role);
            pool.addReward(amount, block.timestamp, vestingPeriod);
            pool.store(_pools[node][role]);
            total += amount;
            emit RewardAdded(node, role, amount, pool.vestingEnd);
        }
        token.safeTransferFrom(msg.sender, address(this), total);
    }

    function give(address node, Role role, uint256 amount) external onlyModelShares {
        Pool memory pool = _accrued(node, role);
        pool.addGift(amount, block.timestamp, vestingPeriod);
        pool.store(_pools[node][role]);
        emit Given(node, role, amount, pool.vestingEnd);
        token.safeTransferFrom(msg.sender, address(this), amount);
    }

    // Views.

    function stakeOf(address node, Role role) external view returns (Stake memory) {
        Pool memory pool = _pools[node][role];
        uint128 active = uint128(pool.active());
        return Stake(active, uint128(pool.free()), pool.locked, pool.assets - active);
    }

    function poolOf(address node, Role role) public view returns (Pool memory pool) {
        pool = _pools[node][role];
        pool.accrue(block.timestamp);
    }

    function positionOf(address delegator, address node, Role role)
        external
        view
        returns (uint256 shares, uint256 amount, uint256 claimable)
    {
        Pool memory pool = poolOf(node, role);
        Position memory position = _settled(pool, node, role, delegator);
        claimable = position.takeEarned(pool) + (delegator == node ? pool.commission : 0);
        return (position.shares, pool.worth(position.shares), claimable);
    }

    function withdrawalAddressOf(address node, Role role) public view returns (Withdrawal memory found) {
        found = _withdrawals[node][role];
        if (found.nextAt != 0 && found.nextAt <= block.timestamp) return Withdrawal(found.next, 0, address(0));
    }

    function requestCount(address delegator) external view returns (uint256) {
        return _requests[delegator].length;
    }

    function requestOf(address delegator, uint256 requestId)
        external
        view
        returns (Request memory request, uint256 amount)
    {
        if (requestId >= _requests[delegator].length) revert RequestUnknown(delegator, requestId);
        request = _requests[delegator][requestId];
        Pool memory pool = _pools[request.node][request.role];
        if (request.generation == pool.generation) amount = pool.worth(request.shares);
    }

    // Shared steps.

    /// @dev Checks that an owner that takes out `leaving` shares keeps its part of the locked stake. Its other
    ///      unbonding shares count, too, since they answer for bonds.
    function _requireOwn(Pool memory pool, address node, Role role, uint256 leaving) private {
        uint256 unbonding = _ownUnbonding[node][role][pool.generation] - leaving;
        _ownUnbonding[node][role][pool.generation] = unbonding;
        uint256 own = pool.worth(_settled(pool, node, role, node).shares + unbonding);
        uint256 wanted = Payouts.portion(pool.locked, Pools.OWN_BPS);
        if (own < wanted) revert OwnStakeInsufficient(node, role, own, wanted);
    }

    /// @dev The pool with rewards shared out up to now. The caller stores it.
    function _accrued(address node, Role role) private returns (Pool memory pool) {
        pool = _pools[node][role];
        if (pool.vestedAt == 0) revert NodeUnknown(node, role);
        (uint256 commission, uint256 index) = (pool.commission, pool.indexX48);
        pool.accrue(block.timestamp);
        if (pool.commission == commission && pool.indexX48 == index) return pool;
        emit RewardsVested(node, role, pool.commission - commission, pool.indexX48);
    }

    /// @dev The position, brought up to its pool. The caller stores it.
    function _settled(Pool memory pool, address node, Role role, address delegator)
        private
        view
        returns (Position memory position)
    {
        position = _positions[node][role][delegator];
        bool isPast = position.shares > 0 && position.generation != pool.generation;
        position.settle(pool, isPast ? _lastIndexX48[node][role][position.generation] : 0);
    }

    function _delegate(address node, Role role, uint256 amount) private {
        token.safeTransferFrom(msg.sender, address(this), amount);
        totalStaked += uint96(amount);
        _join(node, role, amount);
    }

    /// @dev Adds `amount`, which is in this contract but in no pool, to a pool.
    function _join(address node, Role role, uint256 amount) private {
        if (amount == 0) revert AmountIsZero();
        Pool memory pool = _accrued(node, role);
        Position memory position = _settled(pool, node, role, msg.sender);
        uint256 minted = pool.enter(amount);
        position.shares += uint112(minted);
        position.store(_positions[node][role][msg.sender]);
        pool.store(_pools[node][role]);
        emit Delegated(node, role, msg.sender, amount, minted, pool.assets, pool.shares);
    }

    function _startUnbonding(address delegator, address node, Role role, uint256 shares)
        private
        returns (uint256 requestId)
    {
        if (shares == 0) revert AmountIsZero();
        Pool memory pool = _accrued(node, role);
        Position memory position = _settled(pool, node, role, delegator);
        if (position.shares < shares) revert SharesInsufficient(node, role, position.shares, shares);
        position.shares -= uint112(shares);
        pool.unbondingShares += uint112(shares);
        if (delegator == node) _ownUnbonding[node][role][pool.generation] += shares;
        position.store(_positions[node][role][delegator]);
        pool.store(_pools[node][role]);
        requestId = _requests[delegator].length;
        uint40 maturesAt = uint40(block.timestamp + unbondingPeriod);
        _requests[delegator].push(Request(node, role, maturesAt, pool.generation, uint112(shares)));
        emit UnbondingStarted(node, role, delegator, requestId, shares, maturesAt, pool.unbondingShares);
    }

    /// @dev Takes a matured request's worth out of its pool. The tokens stay in this contract, in no pool.
    function _unbond(address delegator, uint256 requestId) private returns (uint256 amount, address payee) {
        if (requestId >= _requests[delegator].length) revert RequestUnknown(delegator, requestId);
        Request memory request = _requests[delegator][requestId];
        if (request.shares == 0) revert RequestUnknown(delegator, requestId);
        if (block.timestamp < request.maturesAt) revert StillUnbonding(request.maturesAt);
        delete _requests[delegator][requestId];
        (address node, Role role) = (request.node, request.role);
        Pool memory pool = _pools[node][role];
        if (request.generation == pool.generation) {
            amount = pool.exit(request.shares);
            if (pool.assets < pool.locked) revert StillBacking(node, role, pool.locked, pool.assets);
            if (delegator == node) _requireOwn(pool, node, role, request.shares);
            pool.store(_pools[node][role]);
        }
        payee = _payee(pool, node, role, delegator);
        emit Unbonded(node, role, delegator, requestId, request.shares, amount, pool.assets, pool.shares);
    }

    function _takeRewards(address delegator, address node, Role role) private returns (uint256 amount, address payee) {
        Pool memory pool = _accrued(node, role);
        Position memory position = _settled(pool, node, role, delegator);
        amount = position.takeEarned(pool);
        if (delegator == node) {
            amount += pool.commission;
            pool.commission = 0;
        }
        position.store(_positions[node][role][delegator]);
        pool.store(_pools[node][role]);
        payee = _payee(pool, node, role, delegator);
        emit Claimed(node, role, delegator, amount);
    }

    function _payStake(address payee, uint256 amount) private {
        totalStaked -= uint96(amount);
        token.safeTransfer(payee, amount);
    }

    function _payRewards(address payee, uint256 amount) private {
        if (amount == 0) revert NothingToClaim(payee);
        token.safeTransfer(payee, amount);
    }

    /// @dev The flag spares nodes without an address, and all delegators, a read of storage.
    function _payee(Pool memory pool, address node, Role role, address delegator) private view returns (address) {
        if (delegator != node || !pool.hasWithdrawalAddress) return delegator;
        return withdrawalAddressOf(node, role).current;
    }

    function _requireSender(address payee, address node, Role role) private view {
        if (msg.sender != payee) revert OnlyWithdrawalAddress(node, role, msg.sender);
    }
}
