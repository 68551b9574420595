// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Permit.sol";
import {IERC20Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";
import {IStaking} from "../src/interfaces/IStaking.sol";
import {StakingFixture} from "./utils/StakingFixture.sol";

/// @notice Attempts on other people's stake and rewards. EVE attacks; what she may win is at most a unit of rounding.
contract StakingAttacksTest is StakingFixture {
    // Prices.

    function test_firstDepositor_cannotInflateThePrice(uint256 first, uint256 donation, uint256 amount) public {
        first = _bound(first, 1, 1e18);
        donation = _bound(donation, 0, FUNDS - first);
        amount = _bound(amount, 1, FUNDS);
        _delegate(EVE, first);
        vm.prank(EVE);
        token.transfer(address(staking), donation);
        _reward(donation); // nor by what the node earns
        _wait(VESTING);
        _delegate(ALICE, amount);
        vm.assertEq(_worth(ALICE), amount);
        vm.assertEq(_worth(EVE), first);
    }

    function test_firstDepositor_cannotUseASlashEither(uint256 stake, uint256 slashed, uint256 amount) public {
        stake = _bound(stake, 2, FUNDS);
        slashed = _bound(slashed, 1, stake - 1);
        amount = _bound(amount, 1, FUNDS);
        _delegate(EVE, stake);
        _lock(slashed);
        _slash(slashed);
        // At the price of nearly nothing there is nothing to mint, which is better than minting too little.
        if (amount * stake / (stake - slashed) + stake > type(uint112).max) return;
        _delegate(ALICE, amount);
        vm.assertLe(amount, _worth(ALICE) + 1);
        vm.assertLe(_worth(EVE), stake - slashed + 1);
    }

    function test_donation_changesNothing(uint256 amount) public {
        amount = _bound(amount, 1, FUNDS / 2);
        _delegate(ALICE, 1_000e18);
        _reward(10e18);
        _wait(VESTING / 2);
        bytes memory before = abi.encode(_pool(), staking.totalStaked(), _worth(ALICE), _claimable(ALICE));
        vm.prank(EVE);
        token.transfer(address(staking), amount);
        vm.assertEq(abi.encode(_pool(), staking.totalStaked(), _worth(ALICE), _claimable(ALICE)), before);
        _assertConserved(10e18 + amount);
    }

    function test_roundTrips_neverPay(uint256 price, uint256[6] memory amounts) public {
        _delegate(ALICE, 1e6);
        _lock(_bound(price, 1, 1e6 - 1));
        _slash(type(uint256).max);
        uint256 alices = _worth(ALICE);
        for (uint256 i = 0; i < amounts.length; ++i) {
            _delegate(EVE, _bound(amounts[i], 1, 100));
            uint256 request = _unbondAll(EVE);
            _wait(UNBONDING);
            _withdraw(EVE, request);
        }
        vm.assertLe(token.balanceOf(EVE), FUNDS);
        vm.assertLe(alices, _worth(ALICE));
    }

    // Rewards.

    function test_jitDelegation_capturesOnlyItsSeconds(uint256 stay) public {
        stay = _bound(stay, 0, VESTING);
        _delegate(ALICE, 100e18);
        _delegate(EVE, 9_900e18); // sees the reward coming, with ninety-nine times the stake
        _reward(1_000e18);
        vm.assertEq(_claimable(EVE), 0);
        _wait(stay);
        _unbondAll(EVE);
        _wait(VESTING);
        uint256 captured = 1_000e18 * stay / VESTING * 9 / 10 * 99 / 100;
        vm.assertLe(_claimable(EVE), captured + 1);
        // And what she did not capture is Alice's, except for what waits for lack of a divisor.
        vm.assertLe(900e18 - captured, _claimable(ALICE) + (10_000e18 >> 48) + 2);
    }

    function test_jitDelegation_inAndOutAtOnceGetsNothing() public {
        _delegate(ALICE, 1e18);
        _reward(1_000e18);
        _wait(VESTING / 2);
        _delegate(EVE, FUNDS);
        _unbondAll(EVE);
        _wait(VESTING);
        vm.assertEq(_claimable(EVE), 0);
        vm.assertLe(900e18 - 1, _claimable(ALICE));
    }

    function test_unbonding_earnsNothing() public {
        _delegate(ALICE, 1e18);
        _delegate(EVE, 1e18);
        _unbondAll(EVE);
        _reward(1_000e18);
        _wait(VESTING);
        vm.assertEq(_claimable(EVE), 0);
    }

    function test_dustRewards_cannotHoldVestingBack(uint256 times) public {
        times = _bound(times, 1, 100);
        _delegate(ALICE, 1e18);
        _reward(1_000e18);
        for (uint256 i = 0; i < times; ++i) {
            _wait(VESTING / times);
            _reward(1);
        }
        // e^-1 of it, or less, is left: (1 - 1/n)^n.
        vm.assertLe(_pool().unvestedX48 >> 48, 1_000e18 * 36_788 / 100_000 + 1_000e18 / 100);
    }

    function test_commissionRaise_withoutDelayIsImpossible() public {
        _delegate(ALICE, 1_000e18);
        _reward(1_000e18);
        vm.prank(OWNER);
        staking.setCommission(ROLE, 10_000);
        _wait(VESTING);
        vm.assertLe(900e18 - (1_000e18 >> 47), _claimable(ALICE));
        vm.assertEq(_pool().commissionBps, COMMISSION);
    }

    /// @dev Nobody touches the pool while the raise takes effect: what vested before is shared by the old commission.
    function test_commissionRaise_doesNotReachBack(uint256 before) public {
        before = _bound(before, 1, VESTING - 1);
        _delegate(ALICE, 1_000e18);
        vm.prank(OWNER);
        staking.setCommission(ROLE, 10_000);
        _wait(UNBONDING - before);
        _reward(1_000e18);
        _wait(VESTING);
        uint256 fair = 1_000e18 * before / VESTING * 9 / 10;
        vm.assertLe(_claimable(ALICE), fair + 1);
        vm.assertLe(fair, _claimable(ALICE) + (1_000e18 >> 47));
        vm.assertEq(_pool().commissionBps, 10_000);
    }

    function test_commissionRaise_isNotAnnouncedTwiceInOne() public {
        vm.startPrank(OWNER);
        staking.setCommission(ROLE, 1_100);
        _wait(UNBONDING - 1);
        staking.setCommission(ROLE, 10_000); // starts the delay anew
        _wait(UNBONDING - 1);
        vm.stopPrank();
        vm.assertEq(_pool().commissionBps, COMMISSION);
    }

    function test_reregistering_cannotChangeTheCommission() public {
        _delegate(ALICE, 100);
        _lock(100);
        _slash(100); // not even once nothing is left
        vm.prank(OWNER);
        vm.expectRevert(abi.encodeWithSelector(IStaking.AlreadyRegistered.selector, OWNER, ROLE));
        staking.register(ROLE, 10_000, 0);
    }

    // Slashes.

    function test_undelegating_inFrontOfASlashDoesNotHelp() public {
        _delegate(ALICE, 1_000e18);
        _delegate(EVE, 1_000e18);
        _lock(500e18);
        uint256 request = _unbondAll(EVE);
        _slash(500e18);
        vm.assertEq(_requestWorth(EVE, request), 750e18);
        vm.assertEq(_worth(ALICE), 750e18);
        _wait(UNBONDING);
        vm.assertEq(_withdraw(EVE, request), 750e18);
    }

    function test_redelegating_inFrontOfASlashIsRefused() public {
        vm.prank(BOB);
        staking.register(ROLE, 0, 0);
        _delegate(EVE, 1_000e18);
        _lock(1_000e18);
        uint256 request = _unbondAll(EVE);
        uint256 due = block.timestamp + UNBONDING;
        vm.startPrank(EVE);
        vm.expectRevert(abi.encodeWithSelector(IStaking.StillUnbonding.selector, due));
        staking.redelegate(request, BOB, ROLE);
        vm.warp(due);
        vm.expectRevert(abi.encodeWithSelector(IStaking.StillBacking.selector, OWNER, ROLE, 1_000e18, 0));
        staking.redelegate(request, BOB, ROLE);
        vm.stopPrank();
        _slash(1_000e18);
        vm.prank(EVE);
        vm.expectRevert(IStaking.AmountIsZero.selector);
        staking.redelegate(request, BOB, ROLE);
        vm.assertEq(staking.stakeOf(BOB, ROLE).active, 0);
    }

    function test_sandwichingASlash_doesNotPay(uint256 amount, uint256 slashed) public {
        amount = _bound(amount, 1, FUNDS / 2);
        slashed = _bound(slashed, 1, 900e18);
        _delegate(ALICE, 1_000e18);
        _lock(slashed);
        _delegate(EVE, amount); // in front of it: bears her part
        _slash(slashed);
        vm.assertLe(_worth(EVE), amount);
        uint256 alices = _worth(ALICE);
        _delegate(EVE, amount); // behind it: at the new price
        vm.assertLe(alices, _worth(ALICE));
        uint256 request = _unbondAll(EVE);
        _wait(UNBONDING);
        _withdraw(EVE, request);
        vm.assertLe(token.balanceOf(EVE), FUNDS);
        vm.assertLe(alices, _worth(ALICE));
    }

    /// @dev The node is in a task at all times, each time with all that it can lock, and others keep coming and going.
    function test_perpetualJoining_cannotLockAnybodyForever(uint256[5] memory amounts) public {
        _delegate(ALICE, 1_000e18);
        uint256 former = 1_000e18;
        _lock(former); // the task that runs when Alice asks to leave
        uint256 request = _unbondAll(ALICE);
        for (uint256 i = 0; i < amounts.length; ++i) {
            _wait(UNBONDING / amounts.length);
            _delegate(EVE, _bound(amounts[i], 1, FUNDS / 10));
            _lock(staking.stakeOf(OWNER, ROLE).free);
            if (i == 2) staking.unlock(OWNER, ROLE, former); // it ends
            _lock(staking.stakeOf(OWNER, ROLE).free);
            if (i == 3) _unbondAll(EVE);
        }
        _wait(amounts.length);
        vm.assertEq(_withdraw(ALICE, request), 1_000e18);
    }

    function test_slashedShare_isNeverPaid(uint256 slashed) public {
        slashed = _bound(slashed, 1, 1_000e18);
        _delegate(EVE, 1_000e18);
        _lock(1_000e18);
        uint256 request = _unbond(EVE, 400e18);
        _slash(slashed);
        staking.unlock(OWNER, ROLE, 1_000e18 - slashed);
        _delegate(ALICE, 1e18);
        (uint256 shares,) = _position(EVE);
        uint256 rest = shares == 0 ? type(uint256).max : _unbond(EVE, shares);
        _wait(UNBONDING);
        uint256 paid = _withdraw(EVE, request);
        if (rest != type(uint256).max) paid += _withdraw(EVE, rest);
        vm.assertLe(paid, 1_000e18 - slashed);
        vm.assertLe(1_000e18 - slashed, paid + 2);
        vm.assertLe(1e18, _worth(ALICE) + 1);
        _assertConserved(0);
    }

    // Permits.

    function test_permit_usedByAnotherIsNoObstacle() public {
        (address signer, uint8 v, bytes32 r, bytes32 s) = _permit(100);
        vm.prank(EVE);
        IERC20Permit(address(token)).permit(signer, address(staking), 100, block.timestamp, v, r, s);
        vm.prank(signer);
        staking.delegateWithPermit(OWNER, ROLE, 100, block.timestamp, v, r, s);
        vm.assertEq(_worth(signer), 100);
    }

    function test_permit_worksOnceAndForItsSignerAlone() public {
        (address signer, uint8 v, bytes32 r, bytes32 s) = _permit(100);
        bytes memory refusal =
            abi.encodeWithSelector(IERC20Errors.ERC20InsufficientAllowance.selector, address(staking), 0, 60);
        vm.prank(signer);
        vm.expectRevert(refusal);
        staking.delegateWithPermit(OWNER, ROLE, 60, block.timestamp, v, r, s); // not the amount that was signed
        vm.prank(signer);
        staking.delegateWithPermit(OWNER, ROLE, 100, block.timestamp, v, r, s);
        vm.prank(signer);
        vm.expectRevert(
            abi.encodeWithSelector(IERC20Errors.ERC20InsufficientAllowance.selector, address(staking), 0, 100)
        );
        staking.delegateWithPermit(OWNER, ROLE, 100, block.timestamp, v, r, s);
    }

    function _permit(uint256 amount) private returns (address signer, uint8 v, bytes32 r, bytes32 s) {
        uint256 secret = uint256(keccak256("delegator"));
        signer = vm.addr(secret);
        token.transfer(signer, FUNDS);
        bytes32 permit = keccak256(
            abi.encode(
                keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)"),
                signer,
                address(staking),
                amount,
                0,
                block.timestamp
            )
        );
        bytes32 domain = IERC20Permit(address(token)).DOMAIN_SEPARATOR();
        (v, r, s) = vm.sign(secret, keccak256(abi.encodePacked(hex"1901", domain, permit)));
    }
}
