// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {IStaking} from "../interfaces/IStaking.sol";
import {Pool, Position} from "../types/Pool.sol";
import {Payouts} from "./Payouts.sol";

/// @title Arithmetic of pools of stake: shares, slashes, and rewards that vest. Time is an argument.
/// @notice Rewards stay out of the assets, so a share starts at one unit and only slashes lower it: assets <= shares
///         holds through every function here. A deposit therefore mints at least as many shares as it has units, and
///         rounding costs it less than one unit: no first depositor can make a high price.
/// @dev No product overflows: amounts have 96 bits, shares 112, fixed-point numbers 144, times 40, commissions 16.
///      The reward index is that of Batog, Boca and Johnson, "Scalable Reward Distribution on the Ethereum
///      Blockchain" (2018).
library Pools {
    uint256 internal constant FRACTION_BITS = 48;
    /// @dev The owner's own part of the stake that its bonds lock: an owner that locks others' stake risks its own.
    uint256 internal constant OWN_BPS = 1_000;

    // Stake.

    /// @notice The worth of `shares` in units of stake, rounded down.
    function worth(Pool memory pool, uint256 shares) internal pure returns (uint256) {
        return pool.shares == 0 ? 0 : shares * pool.assets / pool.shares;
    }

    /// @notice Stake that is not unbonding, rounded down: the limit of all bonds.
    function active(Pool memory pool) internal pure returns (uint256) {
        return worth(pool, pool.shares - pool.unbondingShares);
    }

    /// @notice Stake that a new bond can lock.
    function free(Pool memory pool) internal pure returns (uint256) {
        return Math.saturatingSub(active(pool), pool.locked);
    }

    /// @notice Adds `amount` and the shares for it, rounded down: at least `amount` of them, worth at most `amount`.
    /// @dev Shares outgrow 112 bits only once slashes have taken nearly all that a share was worth: a deposit of 2^k
    ///      units fits down to a price of 2^(k - 112). Leaving is possible at any price.
    function enter(Pool memory pool, uint256 amount) internal pure returns (uint256 minted) {
        minted = pool.shares == 0 ? amount : amount * pool.shares / pool.assets;
        if (pool.shares + minted > type(uint112).max) revert IStaking.PoolWornOut(pool.assets, pool.shares);
        pool.assets += uint96(amount);
        pool.shares += uint112(minted);
    }

    /// @notice Takes out unbonding shares and their worth, rounded down. The last to leave takes all.
    function exit(Pool memory pool, uint256 shares) internal pure returns (uint256 amount) {
        amount = worth(pool, shares);
        pool.assets -= uint96(amount);
        pool.shares -= uint112(shares);
        pool.unbondingShares -= uint112(shares);
    }

    /// @notice Takes `amount`, at most the locked stake, from all shares alike, and the same proportion of the unvested
    ///         rewards, in whole units and rounded up. If no assets are left, a new generation starts.
    function slash(Pool memory pool, uint256 amount) internal pure returns (uint256 forfeited) {
        uint256 unvested = pool.unvestedX48;
        forfeited = Math.ceilDiv(unvested * amount, uint256(pool.assets) << FRACTION_BITS);
        forfeited = Math.min(forfeited, unvested >> FRACTION_BITS);
        pool.unvestedX48 = uint144(unvested - (forfeited << FRACTION_BITS));
        pool.locked -= uint96(amount);
        pool.assets -= uint96(amount);
        if (pool.assets > 0) return forfeited;
        pool.shares = 0;
        pool.unbondingShares = 0;
        ++pool.generation;
    }

    // Rewards.

    /// @notice Adds a reward. All unvested rewards, with this one, vest evenly over `period` seconds from now.
    /// @dev The pool must be accrued. However often rewards come, an unvested amount shrinks at least by the factor e
    ///      in every period.
    function addReward(Pool memory pool, uint256 amount, uint256 time, uint256 period) internal pure {
        pool.unvestedX48 += uint144(amount << FRACTION_BITS);
        pool.vestedAt = uint40(time);
        pool.vestingEnd = uint40(time + period);
    }

    /// @notice Adds money that anybody can have paid in at any time. All that is unvested then vests by the mean of both
    ///         ends, weighted by the amounts and rounded down: a small gift keeps nothing back for longer.
    /// @dev The pool must be accrued.
    function addGift(Pool memory pool, uint256 amount, uint256 time, uint256 period) internal pure {
        (uint256 old, uint256 added) = (pool.unvestedX48, amount << FRACTION_BITS);
        uint256 left = Math.saturatingSub(pool.vestingEnd, time);
        addReward(pool, amount, time, old + added == 0 ? period : (old * left + added * period) / (old + added));
    }

    /// @notice Shares out the rewards that vested up to `time`. The old commission counts until an announced one
    ///         starts.
    function accrue(Pool memory pool, uint256 time) internal pure {
        uint256 changeAt = pool.nextCommissionAt;
        if (changeAt != 0 && changeAt <= time) {
            _vest(pool, changeAt);
            pool.commissionBps = pool.nextCommissionBps;
            pool.nextCommissionAt = 0;
        }
        _vest(pool, time);
    }

    /// @notice The part of `unvestedX48` that vests between `vestedAt` and `time`, rounded down.
    function vestedX48(Pool memory pool, uint256 time) internal pure returns (uint256) {
        if (time >= pool.vestingEnd) return pool.unvestedX48;
        return pool.unvestedX48 * (time - pool.vestedAt) / (pool.vestingEnd - pool.vestedAt);
    }

    /// @notice Brings a position up to its pool. Shares of an earlier generation earned up to its last index, and then
    ///         vanish.
    function settle(Position memory position, Pool memory pool, uint256 lastIndexX48) internal pure {
        bool isCurrent = position.generation == pool.generation;
        uint256 index = isCurrent ? pool.indexX48 : lastIndexX48;
        if (position.shares > 0) position.earnedX48 += uint144(position.shares * (index - position.indexX48));
        if (!isCurrent) position.shares = 0;
        position.generation = pool.generation;
        position.indexX48 = pool.indexX48;
    }

    /// @notice Takes out a position's earnings, rounded down. The fraction of a unit goes back to the pool's unvested
    ///         rewards.
    function takeEarned(Position memory position, Pool memory pool) internal pure returns (uint256 amount) {
        amount = position.earnedX48 >> FRACTION_BITS;
        pool.unvestedX48 += uint144(position.earnedX48 - (amount << FRACTION_BITS));
        position.earnedX48 = 0;
    }

    /// @dev The owner gets its commission in whole units, and the shares that are not unbonding get the rest evenly. If
    ///      there are none, the owner gets all. The remainder of a division stays unvested, so that no bit is lost. An
    ///      index at its maximum, which no real supply can reach, stops rising: nothing reverts here.
    function _vest(Pool memory pool, uint256 until) private pure {
        uint256 vested = vestedX48(pool, until);
        if (vested == 0) return;
        uint256 earning = pool.shares - pool.unbondingShares;
        uint256 fee = earning == 0 ? vested : Payouts.portion(vested, pool.commissionBps);
        uint256 gain = earning == 0 ? 0 : Math.min((vested - fee) / earning, type(uint144).max - pool.indexX48);
        fee >>= FRACTION_BITS;
        if (fee == 0 && gain == 0) return;
        pool.commission += uint96(fee);
        pool.indexX48 += uint144(gain);
        pool.unvestedX48 -= uint144((fee << FRACTION_BITS) + gain * earning);
        pool.vestedAt = uint40(until);
    }

    // Stores whole words: the compiler would read, change and write a word for each of its fields.

    function store(Pool memory pool, Pool storage target) internal {
        uint256 stake = pool.assets | uint256(pool.shares) << 96 | uint256(pool.commissionBps) << 208
            | uint256(pool.nextCommissionBps) << 224;
        uint256 bonds = pool.locked | uint256(pool.unbondingShares) << 96 | uint256(pool.nextCommissionAt) << 208;
        if (pool.hasWithdrawalAddress) bonds |= 1 << 248;
        uint256 earned = pool.indexX48 | uint256(pool.commission) << 144;
        uint256 stream = pool.unvestedX48 | uint256(pool.vestedAt) << 144 | uint256(pool.vestingEnd) << 184
            | uint256(pool.generation) << 224;
        assembly ("memory-safe") {
            sstore(target.slot, stake)
            sstore(add(target.slot, 1), bonds)
            sstore(add(target.slot, 2), earned)
            sstore(add(target.slot, 3), stream)
        }
    }

    function store(Position memory position, Position storage target) internal {
        uint256 held = position.shares | uint256(position.indexX48) << 112;
        uint256 earned = position.earnedX48 | uint256(position.generation) << 144;
        assembly ("memory-safe") {
            sstore(target.slot, held)
            sstore(add(target.slot, 1), earned)
        }
    }
}
