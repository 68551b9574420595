// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../src/interfaces/IStaking.sol";
import {Pool} from "../src/types/Pool.sol";
import {StakingFixture} from "./utils/StakingFixture.sol";
import {StakingHandler} from "./utils/StakingHandler.sol";

/// @notice Invariants after any sequence of calls by anybody. In the end everybody can withdraw.
contract StakingInvariantsTest is StakingFixture {
    /// @dev forge reads this struct.
    struct FuzzSelector {
        address addr;
        bytes4[] selectors;
    }

    StakingHandler private _handler;

    function setUp() public override {
        vm.warp(1_000_000);
        _deployAll(type(uint96).max, UNBONDING, VESTING);
        _handler = new StakingHandler(staking, token, UNBONDING);
        staking.connect(address(_handler), address(_handler));
        token.transfer(address(_handler), type(uint96).max);
    }

    function targetContracts() external view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(_handler);
    }

    function targetSelectors() external view returns (FuzzSelector[] memory targets) {
        bytes4[14] memory all = [
            StakingHandler.delegate.selector,
            StakingHandler.startUnbonding.selector,
            StakingHandler.withdraw.selector,
            StakingHandler.redelegate.selector,
            StakingHandler.claim.selector,
            StakingHandler.donate.selector,
            StakingHandler.setCommission.selector,
            StakingHandler.setWithdrawalAddress.selector,
            StakingHandler.lock.selector,
            StakingHandler.unlock.selector,
            StakingHandler.slash.selector,
            StakingHandler.reward.selector,
            StakingHandler.give.selector,
            StakingHandler.wait.selector
        ];
        targets = new FuzzSelector[](1);
        targets[0] = FuzzSelector(address(_handler), new bytes4[](all.length));
        for (uint256 i = 0; i < all.length; ++i) {
            targets[0].selectors[i] = all[i];
        }
    }

    /// @dev 102,400 calls, and a look at the books after every tenth and the last.
    /// forge-config: default.invariant.runs = 512
    /// forge-config: default.invariant.depth = 200
    /// forge-config: default.invariant.fail-on-revert = true
    /// forge-config: default.invariant.check-interval = 10
    /// forge-config: deep.invariant.runs = 1024
    /// forge-config: deep.invariant.depth = 200
    /// forge-config: deep.invariant.fail-on-revert = true
    /// forge-config: deep.invariant.check-interval = 10
    function invariant_money() external view {
        _moneyIsWhereItIsCounted();
        _poolsAreSound();
        _nobodyHasMoreOrLessThanTheirs();
    }

    /// @notice The last check of each sequence. Of stake nothing is left; of rewards less than one unit for every node
    ///         and for every position, the fractions that nobody can be paid.
    function afterInvariant() external {
        _handler.everybodyLeaves();
        vm.assertEq(staking.totalStaked(), 0);
        vm.assertEq(_handler.withdrawn() + _handler.burnt(), _handler.staked());
        uint256 left = _handler.rewarded() - _handler.claimed();
        _assertConserved(_handler.donated() + left);
        vm.assertLe(left, _handler.OWNERS() * (_handler.ACTORS() + 1) - 1);
    }

    /// @dev To the last unit. Rewards lie at nodes and positions, in each with a fraction of a unit at most.
    function _moneyIsWhereItIsCounted() private view {
        uint256 stake;
        uint256 rewards;
        for (uint256 n = 0; n < _handler.OWNERS(); ++n) {
            Pool memory pool = staking.poolOf(_handler.owner(n), _handler.ROLE());
            stake += pool.assets;
            rewards += pool.unvestedX48 >> 48;
            for (uint256 i = 0; i < _handler.ACTORS(); ++i) {
                (,, uint256 claimable) = staking.positionOf(_handler.actor(i), _handler.owner(n), _handler.ROLE());
                rewards += claimable; // the owner's has the commission in it
            }
        }
        uint256 held = _handler.rewarded() - _handler.claimed();
        _assertConserved(_handler.donated() + held);
        vm.assertEq(staking.totalStaked(), _handler.staked() - _handler.withdrawn() - _handler.burnt());
        vm.assertEq(stake, staking.totalStaked());
        vm.assertLe(rewards, held);
        vm.assertLe(held, rewards + _handler.OWNERS() * (_handler.ACTORS() + 1) - 1);
    }

    function _poolsAreSound() private view {
        for (uint256 n = 0; n < _handler.OWNERS(); ++n) {
            address node = _handler.owner(n);
            Pool memory pool = staking.poolOf(node, _handler.ROLE());
            vm.assertLe(pool.locked, pool.assets);
            vm.assertLe(pool.assets, pool.shares);
            vm.assertTrue((pool.assets == 0) == (pool.shares == 0));
            uint256 held;
            uint256 unbonding;
            for (uint256 i = 0; i < _handler.ACTORS(); ++i) {
                (uint256 shares,,) = staking.positionOf(_handler.actor(i), node, _handler.ROLE());
                held += shares;
                unbonding += _unbondingAt(_handler.actor(i), node, pool.generation);
            }
            vm.assertEq(unbonding, pool.unbondingShares);
            vm.assertEq(held + unbonding, pool.shares);
        }
    }

    function _unbondingAt(address delegator, address node, uint256 generation) private view returns (uint256 shares) {
        for (uint256 id = 0; id < staking.requestCount(delegator); ++id) {
            (IStaking.Request memory request,) = staking.requestOf(delegator, id);
            if (request.node == node && request.generation == generation) shares += request.shares;
        }
    }

    /// @dev A person's stake is what it put in, less what it took out, less its part of slashes.
    function _nobodyHasMoreOrLessThanTheirs() private view {
        for (uint256 i = 0; i < _handler.ACTORS(); ++i) {
            address person = _handler.actor(i);
            uint256 has = _handler.paidOut(person) + _handler.worthOf(person) + _handler.lost(person);
            vm.assertLe(has, _handler.paidIn(person) + _handler.roundings());
            vm.assertLe(_handler.paidIn(person), has + _handler.roundings());
        }
    }
}
