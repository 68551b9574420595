// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IERC20Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";
import {IStaking} from "../src/interfaces/IStaking.sol";
import {Pool} from "../src/types/Pool.sol";
import {StakingFixture} from "./utils/StakingFixture.sol";

contract StakingTest is StakingFixture {
    IStaking.Role private constant OTHER_ROLE = IStaking.Role.Voter;

    // Deployment.

    function test_constructor_refusesUnbondingShorterThanVesting() public {
        vm.expectRevert(abi.encodeWithSelector(IStaking.PeriodsInvalid.selector, 1 days - 1, 1 days));
        _deploy("Staking", abi.encode(token, 1 days - 1, 1 days));
        vm.expectRevert(abi.encodeWithSelector(IStaking.PeriodsInvalid.selector, 1 days, 0));
        _deploy("Staking", abi.encode(token, 1 days, 0));
    }

    function test_constructor_refusesSupplyOfMoreThan96Bits() public {
        uint256 supply = uint256(type(uint96).max) + 1;
        address wide = _deploy("ConsiliumToken", abi.encode(supply, address(this)));
        vm.expectRevert(abi.encodeWithSelector(IStaking.SupplyTooLarge.selector, supply));
        _deploy("Staking", abi.encode(wide, UNBONDING, VESTING));
    }

    function test_connect_onceByDeployer() public {
        vm.expectRevert(abi.encodeWithSelector(IStaking.AlreadyConnected.selector, address(this), address(this)));
        staking.connect(EVE, EVE);
        vm.prank(EVE);
        vm.expectRevert(abi.encodeWithSelector(IStaking.OnlyDeployer.selector, EVE));
        staking.connect(EVE, EVE);
    }

    function test_lockUnlockSlashReward_onlyTasks() public {
        bytes memory refusal = abi.encodeWithSelector(IStaking.OnlyTasks.selector, EVE);
        vm.startPrank(EVE);
        vm.expectRevert(refusal);
        staking.lock(OWNER, ROLE, 1);
        vm.expectRevert(refusal);
        staking.unlock(OWNER, ROLE, 1);
        vm.expectRevert(refusal);
        staking.slash(OWNER, ROLE, 1);
        vm.expectRevert(refusal);
        staking.reward(new IStaking.Reward[](0));
        vm.expectRevert(abi.encodeWithSelector(IStaking.OnlyModelShares.selector, EVE));
        staking.give(OWNER, ROLE, 1);
        vm.stopPrank();
    }

    // Nodes.

    function test_register_stakesAndKeepsRolesApart() public {
        vm.prank(ALICE);
        vm.expectEmit(address(staking));
        emit IStaking.NodeRegistered(ALICE, ROLE, 250);
        vm.expectEmit(address(staking));
        emit IStaking.Delegated(ALICE, ROLE, ALICE, 5e18, 5e18, 5e18, 5e18);
        staking.register(ROLE, 250, 5e18);
        vm.assertEq(staking.stakeOf(ALICE, ROLE).free, 5e18);
        vm.assertEq(staking.stakeOf(ALICE, OTHER_ROLE).active, 0);
        vm.assertEq(staking.poolOf(ALICE, ROLE).commissionBps, 250);
    }

    function test_register_refusals() public {
        vm.startPrank(OWNER);
        vm.expectRevert(abi.encodeWithSelector(IStaking.AlreadyRegistered.selector, OWNER, ROLE));
        staking.register(ROLE, 0, 0);
        vm.expectRevert(abi.encodeWithSelector(IStaking.CommissionTooHigh.selector, 10_001));
        staking.register(OTHER_ROLE, 10_001, 0);
        vm.expectRevert(abi.encodeWithSelector(IStaking.CommissionTooHigh.selector, 10_001));
        staking.setCommission(ROLE, 10_001);
        vm.stopPrank();
    }

    function test_unregisteredNode_isRefusedEverywhere() public {
        bytes memory refusal = abi.encodeWithSelector(IStaking.NodeUnknown.selector, EVE, ROLE);
        vm.expectRevert(refusal);
        _delegate(ALICE, EVE, 1);
        vm.expectRevert(abi.encodeWithSelector(IStaking.StakeInsufficient.selector, EVE, ROLE, 0, 1));
        staking.lock(EVE, ROLE, 1);
        vm.expectRevert(refusal);
        staking.slash(EVE, ROLE, 0);
        vm.expectRevert(refusal);
        _reward(EVE, 1);
        vm.startPrank(EVE);
        vm.expectRevert(refusal);
        staking.setCommission(ROLE, 0);
        vm.expectRevert(refusal);
        staking.startUnbonding(EVE, ROLE, 1);
        vm.expectRevert(refusal);
        staking.claim(EVE, ROLE);
        vm.stopPrank();
    }

    function test_setCommission_lowersAtOnceAndTakesBackARaise() public {
        vm.startPrank(OWNER);
        vm.expectEmit(address(staking));
        emit IStaking.CommissionSet(OWNER, ROLE, 2_000, block.timestamp + UNBONDING);
        staking.setCommission(ROLE, 2_000);
        vm.expectEmit(address(staking));
        emit IStaking.CommissionSet(OWNER, ROLE, 400, block.timestamp);
        staking.setCommission(ROLE, 400);
        vm.stopPrank();
        vm.assertEq(_pool().commissionBps, 400);
        _wait(2 * UNBONDING);
        vm.assertEq(_pool().commissionBps, 400);
    }

    // Delegation.

    function test_delegate_mintsOneShareAUnitUntilASlash() public {
        _delegate(ALICE, 300);
        _lock(100);
        _slash(100);
        vm.expectEmit(address(staking));
        emit IStaking.Delegated(OWNER, ROLE, BOB, 101, 151, 301, 451);
        _delegate(BOB, 101); // 101 * 300 / 200
        vm.assertEq(_worth(ALICE), 200);
        vm.assertEq(_worth(BOB), 100);
    }

    function test_delegate_refusals() public {
        vm.expectRevert(IStaking.AmountIsZero.selector);
        _delegate(ALICE, 0);
        // Nobody has these amounts; some would be small if they were cut to 96 or 128 bits.
        uint256[3] memory amounts = [FUNDS + 1, (1 << 96) + 1, (1 << 128) + 1];
        for (uint256 i = 0; i < 3; ++i) {
            vm.expectRevert(
                abi.encodeWithSelector(IERC20Errors.ERC20InsufficientBalance.selector, ALICE, FUNDS, amounts[i])
            );
            _delegate(ALICE, amounts[i]);
        }
    }

    function test_delegate_refusesWornOutPoolWhichCanStillBeLeft() public {
        _delegate(ALICE, FUNDS);
        _lock(FUNDS - 1);
        _slash(FUNDS - 1);
        vm.expectRevert(abi.encodeWithSelector(IStaking.PoolWornOut.selector, 1, FUNDS));
        _delegate(BOB, FUNDS);
        uint256 request = _unbondAll(ALICE);
        _wait(UNBONDING);
        vm.assertEq(_withdraw(ALICE, request), 1);
    }

    // Unbonding.

    function test_withdraw_paysAfterUnbonding(uint256 stake, uint256 shares) public {
        stake = _bound(stake, 1, FUNDS);
        shares = _bound(shares, 1, stake);
        _delegate(ALICE, stake);
        vm.expectEmit(address(staking));
        emit IStaking.UnbondingStarted(OWNER, ROLE, ALICE, 0, shares, block.timestamp + UNBONDING, shares);
        uint256 request = _unbond(ALICE, shares);
        vm.assertEq(staking.stakeOf(OWNER, ROLE).active, stake - shares);
        vm.assertEq(staking.stakeOf(OWNER, ROLE).unbonding, shares);
        uint256 due = block.timestamp + UNBONDING;
        vm.warp(due - 1);
        vm.expectRevert(abi.encodeWithSelector(IStaking.StillUnbonding.selector, due));
        _withdraw(ALICE, request);
        vm.warp(due);
        vm.expectEmit(address(staking));
        emit IStaking.Unbonded(OWNER, ROLE, ALICE, request, shares, shares, stake - shares, stake - shares);
        _withdraw(ALICE, request);
        vm.assertEq(token.balanceOf(ALICE), FUNDS - stake + shares);
        vm.expectRevert(abi.encodeWithSelector(IStaking.RequestUnknown.selector, ALICE, request));
        _withdraw(ALICE, request);
        _assertConserved(0);
    }

    function test_withdraw_keepsRequestsApart() public {
        _delegate(ALICE, 100);
        _unbond(ALICE, 10);
        _wait(1);
        _unbond(ALICE, 20);
        vm.assertEq(staking.requestCount(ALICE), 2);
        vm.assertEq(_requestWorth(ALICE, 1), 20);
        _wait(UNBONDING - 1);
        vm.assertEq(_withdraw(ALICE, 0), 10);
        vm.expectRevert(abi.encodeWithSelector(IStaking.StillUnbonding.selector, block.timestamp + 1));
        _withdraw(ALICE, 1);
        vm.expectRevert(abi.encodeWithSelector(IStaking.RequestUnknown.selector, BOB, 0));
        _withdraw(BOB, 0);
        vm.expectRevert(abi.encodeWithSelector(IStaking.RequestUnknown.selector, BOB, 0));
        staking.requestOf(BOB, 0);
    }

    function test_requestOf_isWorthNothingAfterTheNodeIsWipedOut() public {
        _delegate(ALICE, 100);
        _lock(100);
        uint256 request = _unbond(ALICE, 40);
        vm.assertEq(_requestWorth(ALICE, request), 40);
        _slash(100);
        _delegate(BOB, 100);
        vm.assertEq(_requestWorth(ALICE, request), 0);
    }

    function test_slash_takesNothingWhereNothingIsLocked() public {
        _delegate(ALICE, 100);
        vm.assertEq(_slash(50), 0);
        vm.assertEq(_worth(ALICE), 100);
        _assertConserved(0);
    }

    function test_startUnbonding_refusals() public {
        _delegate(ALICE, 100);
        vm.expectRevert(IStaking.AmountIsZero.selector);
        _unbond(ALICE, 0);
        uint256[2] memory shares = [uint256(101), (1 << 112) + 1];
        for (uint256 i = 0; i < 2; ++i) {
            vm.expectRevert(abi.encodeWithSelector(IStaking.SharesInsufficient.selector, OWNER, ROLE, 100, shares[i]));
            _unbond(ALICE, shares[i]);
        }
        vm.expectRevert(abi.encodeWithSelector(IStaking.SharesInsufficient.selector, OWNER, ROLE, 0, 1));
        _unbond(EVE, 1);
    }

    function test_withdraw_refusedWhileItBacksBonds() public {
        _delegate(ALICE, 60);
        _delegate(BOB, 40);
        _lock(70);
        uint256 request = _unbondAll(ALICE);
        _wait(UNBONDING);
        vm.expectRevert(abi.encodeWithSelector(IStaking.StillBacking.selector, OWNER, ROLE, 70, 40));
        _withdraw(ALICE, request);
        staking.unlock(OWNER, ROLE, 30);
        vm.assertEq(_withdraw(ALICE, request), 60);
    }

    function test_redelegate_movesWithoutPayingOut() public {
        vm.prank(BOB);
        staking.register(ROLE, 0, 0);
        _delegate(ALICE, 100);
        uint256 request = _unbond(ALICE, 30);
        _wait(UNBONDING);
        vm.prank(ALICE);
        vm.assertEq(staking.redelegate(request, BOB, ROLE), 30);
        vm.assertEq(staking.stakeOf(OWNER, ROLE).active, 70);
        vm.assertEq(staking.stakeOf(BOB, ROLE).active, 30);
        vm.assertEq(staking.totalStaked(), 100);
        vm.assertEq(token.balanceOf(ALICE), FUNDS - 100);
    }

    // Bonds.

    function test_lock_findsRoomOnlyInActiveStake() public {
        _delegate(ALICE, 100);
        _unbond(ALICE, 40);
        _lock(50);
        vm.expectRevert(abi.encodeWithSelector(IStaking.StakeInsufficient.selector, OWNER, ROLE, 10, 11));
        _lock(11);
        vm.expectRevert(abi.encodeWithSelector(IStaking.StakeInsufficient.selector, OWNER, ROLE, 10, 1 << 96));
        _lock(1 << 96);
        _unbond(ALICE, 40);
        vm.assertEq(staking.stakeOf(OWNER, ROLE).free, 0);
        vm.expectRevert(abi.encodeWithSelector(IStaking.LockedInsufficient.selector, OWNER, ROLE, 50, 51));
        staking.unlock(OWNER, ROLE, 51);
    }

    function test_slash_burnsLockedStakeAlone(uint256 stake, uint256 locked, uint256 amount) public {
        stake = _bound(stake, 1, FUNDS);
        locked = _bound(locked, 0, stake);
        _delegate(ALICE, stake);
        _lock(locked);
        uint256 burnt = _slash(amount);
        vm.assertEq(burnt, amount < locked ? amount : locked);
        vm.assertEq(staking.stakeOf(OWNER, ROLE).active, stake - burnt);
        vm.assertEq(staking.stakeOf(OWNER, ROLE).locked, locked - burnt);
        vm.assertEq(token.totalSupply(), SUPPLY - burnt);
        _assertConserved(0);
    }

    function test_slash_reachesOwnerDelegatorAndUnbondingAlike() public {
        _delegate(OWNER, 1_000);
        _delegate(ALICE, 2_000);
        _delegate(BOB, 1_000);
        uint256 request = _unbondAll(BOB);
        _lock(1_000);
        vm.expectEmit(address(staking));
        emit IStaking.StakeSlashed(OWNER, ROLE, 1_000, 0, 3_000, 4_000);
        _slash(1_000);
        vm.assertEq(_worth(OWNER), 750);
        vm.assertEq(_worth(ALICE), 1_500);
        vm.assertEq(_requestWorth(BOB, request), 750);
    }

    function test_slash_forfeitsTheSamePartOfUnvestedRewards() public {
        _delegate(ALICE, 1_024);
        _reward(900);
        _wait(VESTING / 3);
        _lock(256);
        vm.expectEmit(address(staking));
        emit IStaking.StakeSlashed(OWNER, ROLE, 256, 150, 768, 1_024);
        _slash(256);
        vm.assertEq(token.totalSupply(), SUPPLY - 406);
        _wait(VESTING);
        vm.assertEq(_claimable(OWNER) + _claimable(ALICE), 750);
        _assertConserved(750);
    }

    function test_slash_ofAllLeavesOldSharesWorthNothingAndTheirRewards() public {
        _delegate(ALICE, 1_000);
        _lock(1_000);
        uint256 request = _unbond(ALICE, 400);
        _reward(1_000);
        _wait(VESTING / 2);
        vm.expectEmit(address(staking));
        emit IStaking.PoolWiped(OWNER, ROLE, 1);
        _slash(1_000);
        vm.assertEq(_worth(ALICE), 0);
        vm.assertEq(_claimable(ALICE), 450);
        // The next generation starts at one unit a share, and owes the former nothing.
        _delegate(BOB, 70);
        _reward(100);
        _wait(UNBONDING);
        vm.assertEq(_worth(BOB), 70);
        vm.assertEq(_claimable(ALICE), 450);
        vm.assertEq(_claim(ALICE), 450);
        vm.assertEq(_withdraw(ALICE, request), 0);
        vm.expectRevert(abi.encodeWithSelector(IStaking.SharesInsufficient.selector, OWNER, ROLE, 0, 600));
        _unbond(ALICE, 600);
        _delegate(ALICE, 30);
        vm.assertEq(_worth(ALICE), 30);
        vm.assertEq(_pool().assets, 100);
    }

    // Rewards.

    function test_reward_vestsEvenlyAndSplitsByCommissionAndShares() public {
        _delegate(OWNER, 1_024);
        _delegate(ALICE, 3_072);
        _reward(40_960);
        vm.assertEq(_claimable(ALICE), 0);
        _wait(VESTING / 4);
        vm.assertEq(_claimable(ALICE), 6_912); // a quarter of it, less a tenth, times three quarters
        _wait(VESTING);
        vm.assertEq(_claim(ALICE), 27_648);
        vm.assertEq(_claim(OWNER), 13_312);
        _assertConserved(0);
    }

    function test_reward_paysManyNodesByOneTransfer() public {
        vm.prank(BOB);
        staking.register(OTHER_ROLE, 0, 4);
        IStaking.Reward[] memory rewards = new IStaking.Reward[](3);
        rewards[0] = IStaking.Reward(OWNER, ROLE, 30);
        rewards[1] = IStaking.Reward(BOB, OTHER_ROLE, 12);
        uint256 before = token.balanceOf(address(this));
        vm.expectEmit(address(staking));
        emit IStaking.RewardAdded(OWNER, ROLE, 30, block.timestamp + VESTING);
        staking.reward(rewards);
        vm.assertEq(before - token.balanceOf(address(this)), 42);
        _assertConserved(42);
        _wait(VESTING);
        vm.prank(BOB);
        vm.assertEq(staking.claim(BOB, OTHER_ROLE), 12);
        _assertConserved(30);
    }

    function test_reward_isTheOwnersWhereNobodyHasShares() public {
        _reward(100);
        _wait(VESTING);
        vm.assertEq(_claim(OWNER), 100);
        _delegate(ALICE, 50);
        _unbond(ALICE, 50);
        _reward(100);
        _wait(VESTING);
        vm.assertEq(_claimable(ALICE), 0);
        vm.assertEq(_claim(OWNER), 100);
    }

    function test_claim_refusesNothing() public {
        _delegate(ALICE, 100);
        vm.expectRevert(abi.encodeWithSelector(IStaking.NothingToClaim.selector, ALICE));
        _claim(ALICE);
        vm.prank(ALICE);
        vm.expectRevert(abi.encodeWithSelector(IStaking.NothingToClaim.selector, ALICE));
        staking.claimMany(new IStaking.NodeId[](0));
    }

    function test_claimMany_paysOnceWhatEachNodeOwes() public {
        vm.prank(BOB);
        staking.register(ROLE, 0, 0);
        _delegate(ALICE, 100);
        _delegate(ALICE, BOB, 100);
        _reward(OWNER, 1_000);
        _reward(BOB, 500);
        _wait(VESTING);
        IStaking.NodeId[] memory nodes = new IStaking.NodeId[](3);
        nodes[0] = IStaking.NodeId(OWNER, ROLE);
        nodes[1] = IStaking.NodeId(BOB, ROLE);
        nodes[2] = IStaking.NodeId(OWNER, ROLE); // twice is once
        vm.prank(ALICE);
        vm.assertEq(staking.claimMany(nodes), 1_400);
        vm.assertEq(token.balanceOf(ALICE), FUNDS - 200 + 1_400);
        _assertConserved(100);
    }

    function test_claim_paysTheSameHoweverOften(uint256 amount, uint256[8] memory times) public {
        _delegate(OWNER, 7e18);
        _delegate(ALICE, 11e18);
        _reward(_bound(amount, 1, 1_000e18));
        Pool memory untouched = _pool();
        uint256 paid;
        for (uint256 i = 0; i < times.length; ++i) {
            _wait(_bound(times[i], 0, VESTING / 4));
            if (_claimable(ALICE) > 0) paid += _claim(ALICE);
        }
        uint256 elapsed = block.timestamp - untouched.vestedAt;
        uint256 unvested = untouched.unvestedX48 >> 48;
        uint256 vested = elapsed > VESTING ? unvested : unvested * elapsed / VESTING;
        uint256 fair = vested * 9 / 10 * 11 / 18;
        vm.assertLe(paid, fair + 1);
        vm.assertLe(fair, paid + 2 + times.length * (18e18 >> 48)); // what does not divide by the shares waits
    }
}
