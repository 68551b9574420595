// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IStaking} from "../../src/interfaces/IStaking.sol";
import {Pool} from "../../src/types/Pool.sol";
import {IDeployedStaking} from "./Deployed.sol";
import {Test} from "./Vm.sol";

/// @notice All callers of the staking contract: three owners, three more delegators, the
///         task contract (this one), and somebody who sends tokens for nothing. No call here may revert, except where
///         a refusal is what must come. Keeps its own books by person.
contract StakingHandler is Test {
    IStaking.Role public constant ROLE = IStaking.Role.Aggregator;
    uint256 public constant OWNERS = 3;
    uint256 public constant ACTORS = 6;

    IDeployedStaking public immutable staking;
    IERC20 public immutable token;
    uint256 public immutable unbonding;

    uint256 public donated;
    uint256 public rewarded;
    uint256 public claimed;
    uint256 public burnt;
    uint256 public staked;
    uint256 public withdrawn;
    /// @notice The number of roundings: each may be off by less than a unit.
    uint256 public roundings;
    mapping(address actor => uint256) public paidIn;
    mapping(address actor => uint256) public paidOut;
    mapping(address actor => uint256) public lost;

    /// @dev Expects `supply` tokens, and to be named the task contract.
    constructor(IDeployedStaking staking_, IERC20 token_, uint256 unbonding_) {
        (staking, token, unbonding) = (staking_, token_, unbonding_);
        token.approve(address(staking), type(uint256).max);
        for (uint256 i = 0; i < ACTORS; ++i) {
            vm.startPrank(actor(i));
            token.approve(address(staking), type(uint256).max);
            if (i < OWNERS) staking.register(ROLE, i * 2_500, 0);
            vm.stopPrank();
        }
    }

    function actor(uint256 i) public pure returns (address) {
        return address(uint160(0xAC7001 + i % ACTORS));
    }

    function owner(uint256 i) public pure returns (address) {
        return actor(i % OWNERS);
    }

    // Delegators.

    function delegate(uint256 who, uint256 where, uint256 amount) external {
        amount = _amount(amount, 1, 1e21);
        address delegator = actor(who);
        Pool memory pool = staking.poolOf(owner(where), ROLE);
        bool isWornOut = pool.shares > 0 && amount * pool.shares / pool.assets + pool.shares > type(uint112).max;
        token.transfer(delegator, amount);
        vm.prank(delegator);
        if (isWornOut) {
            vm.expectRevert(abi.encodeWithSelector(IStaking.PoolWornOut.selector, pool.assets, pool.shares));
        }
        staking.delegate(owner(where), ROLE, amount);
        if (isWornOut) return;
        ++roundings;
        staked += amount;
        paidIn[delegator] += amount;
    }

    function startUnbonding(uint256 who, uint256 where, uint256 shares) external {
        (uint256 all,,) = staking.positionOf(actor(who), owner(where), ROLE);
        if (all == 0) return;
        shares = shares % 3 == 0 ? all : _amount(shares, 1, all);
        vm.prank(actor(who));
        staking.startUnbonding(owner(where), ROLE, shares);
        ++roundings; // two holdings round where one did
    }

    function withdraw(uint256 who, uint256 number, bool byAddress) external {
        address delegator = actor(who);
        (bool isOpen, uint256 id, uint256 worth) = _request(delegator, number);
        if (!isOpen) return;
        (IStaking.Request memory request,) = staking.requestOf(delegator, id);
        address payee = _payee(delegator, request.node);
        uint256 had = token.balanceOf(payee);
        vm.prank(byAddress ? payee : delegator);
        uint256 amount = byAddress ? staking.withdrawFor(delegator, id) : staking.withdraw(id);
        vm.assertEq(amount, worth);
        vm.assertEq(token.balanceOf(payee), had + amount);
        ++roundings;
        withdrawn += amount;
        paidOut[delegator] += amount;
    }

    function redelegate(uint256 who, uint256 number, uint256 where) external {
        address delegator = actor(who);
        (bool isOpen, uint256 id, uint256 worth) = _request(delegator, number);
        Pool memory pool = staking.poolOf(owner(where), ROLE);
        if (!isOpen || worth == 0) return;
        if (pool.shares > 0 && worth * pool.shares / pool.assets + pool.shares > type(uint112).max / 2) return;
        (IStaking.Request memory request,) = staking.requestOf(delegator, id);
        address payee = _payee(delegator, request.node);
        vm.prank(delegator);
        if (payee != delegator) {
            vm.expectRevert(abi.encodeWithSelector(IStaking.PaidElsewhere.selector, id, payee));
            staking.redelegate(id, owner(where), ROLE);
            return;
        }
        vm.assertEq(staking.redelegate(id, owner(where), ROLE), worth);
        roundings += 2;
    }

    function claim(uint256 who, uint256 where, bool byAddress) external {
        (,, uint256 due) = staking.positionOf(actor(who), owner(where), ROLE);
        address payee = _payee(actor(who), owner(where));
        uint256 had = token.balanceOf(payee);
        vm.prank(byAddress ? payee : actor(who));
        if (due == 0) vm.expectRevert(abi.encodeWithSelector(IStaking.NothingToClaim.selector, payee));
        uint256 amount = byAddress && actor(who) == owner(where)
            ? staking.claimFor(owner(where), ROLE)
            : staking.claim(owner(where), ROLE);
        vm.assertEq(amount, due);
        vm.assertEq(token.balanceOf(payee), had + amount);
        claimed += amount;
    }

    function donate(uint256 amount) external {
        amount = _amount(amount, 1, 1e21);
        token.transfer(address(staking), amount);
        donated += amount;
    }

    // Owners and tasks.

    function setCommission(uint256 where, uint256 basisPoints) external {
        vm.prank(owner(where));
        staking.setCommission(ROLE, basisPoints % 10_001);
    }

    /// @notice Of four accounts that hold no stake. One in four calls takes back an announced change.
    function setWithdrawalAddress(uint256 where, uint256 which) external {
        address node = owner(where);
        address payee = _payee(node, node);
        address to = which % 4 == 0 && payee != node ? payee : address(uint160(0xC01D01 + (which >> 8) % 4));
        vm.prank(payee);
        staking.setWithdrawalAddress(node, ROLE, to);
    }

    function lock(uint256 where, uint256 amount) external {
        uint256 free = staking.stakeOf(owner(where), ROLE).free;
        staking.lock(owner(where), ROLE, amount % 3 == 0 ? free : _amount(amount, 0, free));
    }

    function unlock(uint256 where, uint256 amount) external {
        uint256 locked = staking.stakeOf(owner(where), ROLE).locked;
        staking.unlock(owner(where), ROLE, amount % 2 == 0 ? locked : _amount(amount, 0, locked));
    }

    function slash(uint256 where, uint256 amount) external {
        address node = owner(where);
        uint256 locked = staking.stakeOf(node, ROLE).locked;
        amount = amount % 4 == 0 ? locked : _amount(amount, 0, locked);
        uint256[ACTORS] memory before = _worths(node);
        uint256 supply = token.totalSupply();
        vm.assertEq(staking.slash(node, ROLE, amount), amount);
        uint256 forfeited = supply - token.totalSupply() - amount;
        burnt += amount;
        rewarded -= forfeited;
        uint256[ACTORS] memory afterwards = _worths(node);
        for (uint256 i = 0; i < ACTORS; ++i) {
            lost[actor(i)] += before[i] - afterwards[i];
            roundings += 2 * (1 + staking.requestCount(actor(i)));
        }
    }

    function reward(uint256 first, uint256 second) external {
        IStaking.Reward[] memory rewards = new IStaking.Reward[](2);
        rewards[0] = IStaking.Reward(owner(first >> 128), ROLE, uint96(_amount(first, 0, 1e20)));
        rewards[1] = IStaking.Reward(owner(second >> 128), ROLE, uint96(_amount(second, 0, 1e20)));
        staking.reward(rewards);
        rewarded += uint256(rewards[0].amount) + rewards[1].amount;
    }

    function give(uint256 to, uint256 amount) external {
        amount = _amount(amount, 0, 1e20);
        staking.give(owner(to), ROLE, amount);
        rewarded += amount;
    }

    function wait(uint256 time) external {
        vm.warp(block.timestamp + (time % 4 == 0 ? unbonding : time % (unbonding / 4)));
    }

    // Everybody leaves.

    /// @notice Tasks end, everybody unbonds all, waits, withdraws and claims. Nothing may stop them.
    function everybodyLeaves() external {
        for (uint256 n = 0; n < OWNERS; ++n) {
            staking.unlock(owner(n), ROLE, staking.stakeOf(owner(n), ROLE).locked);
            for (uint256 i = 0; i < ACTORS; ++i) {
                (uint256 shares,,) = staking.positionOf(actor(i), owner(n), ROLE);
                if (shares == 0) continue;
                vm.prank(actor(i));
                staking.startUnbonding(owner(n), ROLE, shares);
            }
        }
        vm.warp(block.timestamp + unbonding);
        for (uint256 i = 0; i < ACTORS; ++i) {
            _leaveAll(actor(i));
        }
    }

    function _leaveAll(address delegator) private {
        vm.startPrank(delegator);
        for (uint256 id = 0; id < staking.requestCount(delegator); ++id) {
            (IStaking.Request memory request,) = staking.requestOf(delegator, id);
            if (request.shares > 0) withdrawn += staking.withdraw(id);
        }
        for (uint256 n = 0; n < OWNERS; ++n) {
            (,, uint256 due) = staking.positionOf(delegator, owner(n), ROLE);
            if (due > 0) claimed += staking.claim(owner(n), ROLE);
        }
        vm.stopPrank();
    }

    /// @notice The worth of a person's stake at all nodes, unbonding stake included.
    function worthOf(address delegator) public view returns (uint256 worth) {
        for (uint256 n = 0; n < OWNERS; ++n) {
            worth += _worthAt(delegator, owner(n));
        }
    }

    function _worths(address node) private view returns (uint256[ACTORS] memory worths) {
        for (uint256 i = 0; i < ACTORS; ++i) {
            worths[i] = _worthAt(actor(i), node);
        }
    }

    function _worthAt(address delegator, address node) private view returns (uint256 worth) {
        (, worth,) = staking.positionOf(delegator, node, ROLE);
        for (uint256 id = 0; id < staking.requestCount(delegator); ++id) {
            (IStaking.Request memory request, uint256 amount) = staking.requestOf(delegator, id);
            if (request.node == node) worth += amount;
        }
    }

    /// @dev A matured request that bonds do not hold back; for one that they do, the refusal is what must come.
    function _request(address delegator, uint256 number) private returns (bool isOpen, uint256 id, uint256 worth) {
        uint256 count = staking.requestCount(delegator);
        if (count == 0) return (false, 0, 0);
        id = number % count;
        IStaking.Request memory request;
        (request, worth) = staking.requestOf(delegator, id);
        if (request.shares == 0 || request.maturesAt > block.timestamp) return (false, 0, 0);
        Pool memory pool = staking.poolOf(request.node, ROLE);
        if (request.generation != pool.generation) vm.assertEq(worth, 0);
        uint256 left = pool.assets - worth;
        if (left >= pool.locked && _keepsOwn(delegator, request, pool, worth)) return (true, id, worth);
        if (left >= pool.locked) return (false, id, worth);
        vm.prank(delegator);
        vm.expectRevert(abi.encodeWithSelector(IStaking.StillBacking.selector, request.node, ROLE, pool.locked, left));
        staking.withdraw(id);
    }

    function _payee(address delegator, address node) private view returns (address) {
        address current = staking.withdrawalAddressOf(node, ROLE).current;
        return delegator == node && current != address(0) ? current : delegator;
    }

    /// @dev Every magnitude as likely as every other.
    function _amount(uint256 word, uint256 least, uint256 most) private pure returns (uint256) {
        return least + (word >> 16) % (((most - least) >> (word % 70)) + 1);
    }

    /// @dev True if an owner that withdraws a request keeps its part of the locked stake.
    function _keepsOwn(address delegator, IStaking.Request memory request, Pool memory pool, uint256 worth)
        private
        view
        returns (bool)
    {
        if (delegator != request.node || request.generation != pool.generation) return true;
        (uint256 shares,,) = staking.positionOf(delegator, request.node, ROLE);
        for (uint256 id = 0; id < staking.requestCount(delegator); ++id) {
            (IStaking.Request memory other,) = staking.requestOf(delegator, id);
            if (other.node == request.node && other.generation == pool.generation) shares += other.shares;
        }
        shares -= request.shares;
        uint256 left = pool.shares - request.shares;
        uint256 own = left == 0 ? 0 : shares * (pool.assets - worth) / left;
        return own >= uint256(pool.locked) / 10;
    }
}
