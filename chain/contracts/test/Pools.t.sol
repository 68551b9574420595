// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Pools} from "../src/libraries/Pools.sol";
import {IStaking} from "../src/interfaces/IStaking.sol";
import {Pool, Position} from "../src/types/Pool.sol";
import {Test} from "./utils/Vm.sol";

/// @notice The arithmetic by itself, on any pool that can be: any price, any amounts up to the widths' limits.
contract PoolsTest is Test {
    using Pools for Pool;
    using Pools for Position;

    uint256 private constant SUPPLY = type(uint96).max;

    /// @dev A pool from random words: every magnitude is as likely as every other.
    function _some(uint256[8] memory words) private pure returns (Pool memory pool) {
        pool.assets = uint96(_magnitude(words[0], 1, SUPPLY / 2));
        pool.shares = uint112(_magnitude(words[1], pool.assets, type(uint112).max / 2));
        pool.unbondingShares = uint112(words[2] % 4 == 0 ? 0 : _magnitude(words[2], 0, pool.shares));
        pool.locked = uint96(_magnitude(words[3], 0, pool.assets));
        pool.unvestedX48 = uint144(_magnitude(words[4], 0, (SUPPLY / 4) << 48));
        pool.indexX48 = uint144(_magnitude(words[5], 0, type(uint144).max / 2));
        pool.commissionBps = uint16(words[6] % 10_001);
        pool.vestedAt = uint40(1_000 + words[7] % 1e6);
        pool.vestingEnd = uint40(pool.vestedAt + (words[7] >> 64) % 1e6);
    }

    function _magnitude(uint256 word, uint256 least, uint256 most) private pure returns (uint256) {
        uint256 range = (most - least) >> ((word >> 248) % 112);
        return least + (word % (1 << 200)) % (range + 1);
    }

    // Stake.

    function test_enter_mintsFairlyAndKeepsThePriceBelowOne(uint256[8] memory words, uint256 amount, uint256 others)
        public
        pure
    {
        Pool memory pool = _some(words);
        amount = _magnitude(amount, 1, SUPPLY / 2);
        others = _magnitude(others, 0, pool.shares);
        uint256 before = pool.worth(others);
        (uint256 assets, uint256 shares) = (pool.assets, pool.shares);
        vm.assume(amount * shares / assets + shares <= type(uint112).max);
        uint256 minted = pool.enter(amount);
        vm.assertLe(amount, minted);
        vm.assertEq(pool.assets, assets + amount);
        vm.assertEq(pool.shares, shares + minted);
        vm.assertLe(pool.assets, pool.shares);
        vm.assertLe(pool.worth(minted), amount);
        vm.assertLe(amount, pool.worth(minted) + 1);
        vm.assertLe(before, pool.worth(others));
        vm.assertLe(pool.worth(others), before + 1);
    }

    function test_enter_mintsOneForOneIntoAnEmptyPool(uint256 amount) public pure {
        amount = _magnitude(amount, 1, SUPPLY);
        Pool memory pool;
        vm.assertEq(pool.enter(amount), amount);
        vm.assertEq(pool.worth(amount), amount);
    }

    function test_enter_refusesMoreSharesThanCanBeCounted(uint256 amount, uint256 shares) public {
        shares = _bound(shares, 1 << 60, type(uint112).max);
        amount = _bound(amount, type(uint112).max / shares, 1 << 53);
        Pool memory pool;
        (pool.assets, pool.shares) = (1, uint112(shares));
        vm.expectRevert(abi.encodeWithSelector(IStaking.PoolWornOut.selector, 1, shares));
        this.enter(pool, amount);
    }

    function enter(Pool memory pool, uint256 amount) external pure {
        pool.enter(amount);
    }

    function test_exit_takesNoMoreThanItsShare(uint256[8] memory words, uint256 shares, uint256 others) public pure {
        Pool memory pool = _some(words);
        shares = _magnitude(shares, 0, pool.unbondingShares);
        others = _magnitude(others, 0, pool.shares - shares);
        (uint256 assets, uint256 all, uint256 before) = (pool.assets, pool.shares, pool.worth(others));
        uint256 amount = pool.exit(shares);
        vm.assertLe(amount * all, shares * assets);
        vm.assertLe(shares * assets, amount * all + all - 1);
        vm.assertEq(pool.assets, assets - amount);
        vm.assertEq(pool.shares, all - shares);
        vm.assertLe(pool.assets, pool.shares);
        vm.assertLe(before, pool.worth(others));
    }

    function test_exit_ofTheLastTakesAll(uint256[8] memory words) public pure {
        Pool memory pool = _some(words);
        pool.unbondingShares = pool.shares;
        uint256 assets = pool.assets;
        vm.assertEq(pool.exit(pool.shares), assets);
        vm.assertEq(pool.assets + uint256(pool.shares), 0);
    }

    function test_free_isActiveLessLocked(uint256[8] memory words) public pure {
        Pool memory pool = _some(words);
        uint256 active = uint256(pool.shares - pool.unbondingShares) * pool.assets / pool.shares;
        vm.assertEq(pool.active(), active);
        vm.assertEq(pool.free(), active > pool.locked ? active - pool.locked : 0);
    }

    function test_slash_takesExactlyAndForfeitsInProportion(uint256[8] memory words, uint256 amount) public pure {
        Pool memory pool = _some(words);
        amount = _magnitude(amount, 0, pool.locked);
        (uint256 assets, uint256 locked, uint256 unvested) = (pool.assets, pool.locked, pool.unvestedX48);
        (uint256 shares, uint256 generation) = (pool.shares, pool.generation);
        uint256 forfeited = pool.slash(amount);
        vm.assertEq(pool.assets, assets - amount);
        vm.assertEq(pool.locked, locked - amount);
        vm.assertEq(pool.unvestedX48, unvested - (forfeited << 48));
        // Rounded up to a whole unit, as far as there are whole units.
        uint256 exact = unvested * amount; // times assets << 48
        if (forfeited < unvested >> 48) vm.assertLe(exact, forfeited * (assets << 48));
        if (forfeited > 0) vm.assertLe((forfeited - 1) * (assets << 48), exact);
        bool isWiped = amount == assets;
        vm.assertEq(pool.shares, isWiped ? 0 : shares);
        vm.assertEq(pool.generation, isWiped ? generation + 1 : generation);
        if (isWiped) vm.assertEq(pool.unvestedX48 >> 48, 0);
    }

    // Rewards.

    function test_accrue_accountsForEveryBit(uint256[8] memory words, uint256 time) public pure {
        Pool memory pool = _some(words);
        time = _bound(time, pool.vestedAt, pool.vestedAt + 2e6);
        uint256 earning = pool.shares - pool.unbondingShares;
        (uint256 unvested, uint256 index, uint256 vested) = (pool.unvestedX48, pool.indexX48, pool.vestedX48(time));
        pool.accrue(time);
        uint256 gain = pool.indexX48 - index;
        uint256 paid = uint256(pool.commission) << 48;
        vm.assertEq(unvested - pool.unvestedX48, paid + gain * earning);
        vm.assertLe(paid + gain * earning, vested);
        // The rest does not divide: less than a unit of commission, less than a bit a share.
        vm.assertLe(vested, paid + gain * earning + (1 << 48) + earning);
        if (earning == 0) vm.assertEq(gain, 0);
        else vm.assertLe(paid * 10_000, vested * pool.commissionBps);
    }

    function test_accrue_inStepsNeverPaysAhead(uint256[8] memory words, uint256[4] memory times) public pure {
        Pool memory once = _some(words);
        Pool memory often = _some(words);
        uint256 time = once.vestedAt;
        for (uint256 i = 0; i < times.length; ++i) {
            time += times[i] % 3e5;
            often.accrue(time);
        }
        once.accrue(time);
        vm.assertLe(once.unvestedX48, uint256(often.unvestedX48) + (1 << 48) + once.shares);
        // Steps leave behind at most what does not divide, at each.
        uint256 left = times.length * ((1 << 48) + uint256(once.shares) + 1);
        vm.assertLe(often.unvestedX48, once.unvestedX48 + left);
    }

    function test_accrue_changesCommissionInTime(uint256[8] memory words, uint256 changeAt, uint256 raised)
        public
        pure
    {
        Pool memory pool = _some(words);
        Pool memory stepped = _some(words);
        changeAt = _bound(changeAt, pool.vestedAt, uint256(pool.vestingEnd) + 10);
        raised = _bound(raised, pool.commissionBps, 10_000);
        (pool.nextCommissionAt, pool.nextCommissionBps) = (uint40(changeAt), uint16(raised));
        pool.accrue(changeAt + 1e6);
        stepped.accrue(changeAt);
        stepped.commissionBps = uint16(raised);
        stepped.nextCommissionBps = uint16(raised);
        stepped.accrue(changeAt + 1e6);
        vm.assertEq(abi.encode(pool), abi.encode(stepped));
    }

    function test_accrue_stopsAtAFullIndex(uint256[8] memory words) public pure {
        Pool memory pool = _some(words);
        pool.indexX48 = type(uint144).max;
        pool.accrue(pool.vestingEnd);
        vm.assertEq(pool.indexX48, type(uint144).max);
    }

    function test_addReward_vestsAllOverThePeriod(uint256[8] memory words, uint256 amount, uint256 period) public pure {
        Pool memory pool = _some(words);
        amount = _magnitude(amount, 0, SUPPLY / 4);
        period = _bound(period, 1, type(uint32).max);
        uint256 now_ = pool.vestedAt + 17;
        uint256 before = pool.unvestedX48;
        pool.addReward(amount, now_, period);
        vm.assertEq(pool.unvestedX48, before + (amount << 48));
        vm.assertEq(pool.vestedX48(now_), 0);
        vm.assertEq(pool.vestedX48(now_ + period), pool.unvestedX48);
        vm.assertEq(pool.vestedX48(now_ + period / 2), pool.unvestedX48 * (period / 2) / period);
    }

    /// @dev The end lies between both ends, weighted, so that dust keeps back nothing, and is never paid out early.
    function test_addGift_endsByTheWeightOfBoth(uint256[8] memory words, uint256 amount, uint256 period) public pure {
        Pool memory pool = _some(words);
        amount = _magnitude(amount, 0, SUPPLY / 4);
        uint256 now_ = pool.vestedAt;
        (uint256 old, uint256 left) = (pool.unvestedX48, pool.vestingEnd > now_ ? pool.vestingEnd - now_ : 0);
        period = _bound(period, left > 0 ? left : 1, type(uint32).max);
        pool.addGift(amount, now_, period);
        uint256 added = amount << 48;
        vm.assertEq(pool.unvestedX48, old + added);
        vm.assertEq(pool.vestedAt, now_);
        uint256 until = pool.vestingEnd - now_;
        vm.assertTrue(left <= until && until <= period);
        if (old + added == 0) return vm.assertEq(until, period);
        vm.assertLe(until * (old + added), old * left + added * period);
        vm.assertGt((until + 1) * (old + added), old * left + added * period);
        if (old >= added * period) vm.assertEq(until, left);
    }

    function test_settle_paysWhatTheIndexRose(uint256[8] memory words, uint256 shares, uint256 since) public pure {
        Pool memory pool = _some(words);
        shares = _magnitude(shares, 0, pool.shares);
        since = _magnitude(since, 0, ((SUPPLY / 2) << 48) / (shares + 1));
        pool.indexX48 = uint144(type(uint144).max / 2 + since);
        Position memory position = Position(uint112(shares), type(uint144).max / 2, 7, pool.generation);
        position.settle(pool, 0);
        vm.assertEq(position.earnedX48, 7 + shares * since);
        vm.assertEq(position.shares, shares);
    }

    function test_takeEarned_givesTheFractionBack(uint256[8] memory words, uint256 earned) public pure {
        Pool memory pool = _some(words);
        uint256 unvested = pool.unvestedX48;
        earned = _magnitude(earned, 0, (SUPPLY / 4) << 48);
        Position memory position;
        position.earnedX48 = uint144(earned);
        uint256 whole = position.takeEarned(pool);
        vm.assertEq(whole, earned >> 48);
        vm.assertEq((whole << 48) + pool.unvestedX48, earned + unvested);
        vm.assertEq(position.earnedX48, 0);
    }

    function test_settle_endsAnEarlierGeneration(uint256[8] memory words, uint256 shares) public pure {
        Pool memory pool = _some(words);
        pool.generation = 3;
        pool.indexX48 = 900;
        shares = _magnitude(shares, 1, SUPPLY);
        Position memory position = Position(uint112(shares), 100, 0, 1);
        position.settle(pool, 150);
        vm.assertEq(position.earnedX48, shares * 50);
        vm.assertEq(position.shares, 0);
        vm.assertEq(position.indexX48, 900);
        vm.assertEq(position.generation, 3);
    }
}
