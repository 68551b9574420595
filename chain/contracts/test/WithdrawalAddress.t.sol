// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../src/interfaces/IStaking.sol";
import {StakingFixture} from "./utils/StakingFixture.sol";

/// @dev A wallet with code, as a Safe once its owners have signed: it calls, takes tokens, and has no callback.
contract Wallet {
    function execute(address to, bytes calldata data) external returns (bytes memory) {
        (bool isDone, bytes memory answer) = to.call(data);
        require(isDone, "refused");
        return answer;
    }
}

abstract contract WithdrawalFixture is StakingFixture {
    IStaking.Role internal constant OTHER_ROLE = IStaking.Role.Voter;
    address internal constant COLD = address(0xC0001);
    address internal constant NEXT = address(0xC0002);

    function _set(address sender, address to) internal {
        vm.prank(sender);
        staking.setWithdrawalAddress(OWNER, ROLE, to);
    }

    function _refuse(address sender, address to) internal {
        vm.expectRevert(abi.encodeWithSelector(IStaking.OnlyWithdrawalAddress.selector, OWNER, ROLE, sender));
        _set(sender, to);
    }

    function _current() internal view returns (address) {
        return staking.withdrawalAddressOf(OWNER, ROLE).current;
    }

    function _earn(uint256 amount) internal {
        _reward(amount);
        _wait(VESTING);
    }

    function _beEmpty(address account) internal {
        vm.startPrank(account);
        token.transfer(address(this), token.balanceOf(account));
        vm.stopPrank();
    }
}

contract WithdrawalAddressTest is WithdrawalFixture {
    function test_set_firstCountsAtOnceAndForGood() public {
        vm.assertEq(_current(), address(0));
        vm.expectEmit(address(staking));
        emit IStaking.WithdrawalAddressSet(OWNER, ROLE, COLD, block.timestamp);
        _set(OWNER, COLD);
        vm.assertEq(_current(), COLD);
        vm.assertTrue(_pool().hasWithdrawalAddress);
        vm.assertEq(staking.withdrawalAddressOf(OWNER, OTHER_ROLE).current, address(0));
    }

    function test_set_refusesEverybodyElse(address stranger) public {
        vm.assume(stranger != OWNER);
        _refuse(stranger, COLD);
        vm.assume(stranger != COLD);
        _set(OWNER, COLD);
        _refuse(stranger, NEXT);
        _set(COLD, NEXT);
        vm.assume(stranger != NEXT);
        _refuse(stranger, COLD);
    }

    function test_set_refusesAddressesThatCannotBePaid() public {
        address[5] memory refused = [address(0), OWNER, address(staking), address(token), address(this)];
        address[2] memory senders = [OWNER, COLD];
        for (uint256 s = 0; s < 2; ++s) {
            for (uint256 i = 0; i < 5; ++i) {
                vm.expectRevert(abi.encodeWithSelector(IStaking.WithdrawalAddressInvalid.selector, refused[i]));
                _set(senders[s], refused[i]);
            }
            if (s == 0) _set(OWNER, COLD);
        }
    }

    function test_set_refusesUnknownNodes() public {
        vm.expectRevert(abi.encodeWithSelector(IStaking.NodeUnknown.selector, EVE, ROLE));
        vm.prank(EVE);
        staking.setWithdrawalAddress(EVE, ROLE, COLD);
    }

    function test_change_countsFromTheLastSecondOfTheDelayOn() public {
        _delegate(OWNER, 100);
        _set(OWNER, COLD);
        uint256 due = block.timestamp + UNBONDING;
        vm.expectEmit(address(staking));
        emit IStaking.WithdrawalAddressSet(OWNER, ROLE, NEXT, due);
        _set(COLD, NEXT);
        _reward(50e18);
        vm.warp(due - 1);
        vm.assertEq(_current(), COLD);
        vm.assertEq(staking.withdrawalAddressOf(OWNER, ROLE).next, NEXT);
        vm.assertEq(staking.withdrawalAddressOf(OWNER, ROLE).nextAt, due);
        _refuse(NEXT, EVE);
        vm.assertEq(_claim(OWNER), token.balanceOf(COLD));
        _reward(50e18);
        vm.warp(due);
        vm.assertEq(_current(), NEXT);
        vm.assertEq(staking.withdrawalAddressOf(OWNER, ROLE).next, address(0));
        vm.assertEq(staking.withdrawalAddressOf(OWNER, ROLE).nextAt, 0);
        _refuse(COLD, EVE);
        vm.assertEq(_claim(OWNER), token.balanceOf(NEXT));
        _set(NEXT, EVE); // and the next change waits, too
        vm.assertEq(_current(), NEXT);
    }

    function test_change_isTakenBackByThePresentAddress() public {
        _set(OWNER, COLD);
        _set(COLD, NEXT);
        _wait(UNBONDING - 1);
        vm.expectEmit(address(staking));
        emit IStaking.WithdrawalAddressSet(OWNER, ROLE, COLD, block.timestamp);
        _set(COLD, COLD);
        _wait(UNBONDING);
        vm.assertEq(_current(), COLD);
        _set(COLD, NEXT);
        _wait(UNBONDING);
        _set(NEXT, NEXT);
        vm.assertEq(_current(), NEXT);
    }

    function test_change_announcedAnewWaitsAnew() public {
        _set(OWNER, COLD);
        _set(COLD, EVE);
        _wait(UNBONDING - 1);
        _set(COLD, NEXT);
        _wait(UNBONDING - 1);
        vm.assertEq(_current(), COLD);
        _wait(1);
        vm.assertEq(_current(), NEXT);
    }

    /// @notice Any order of unbonding, withdrawing, claiming, slashing and changing, by either key: the owner's money
    ///         goes to the address of that moment, and none to the node.
    function test_anyOrder_paysTheAddressOfTheMoment(uint256[24] memory steps) public {
        _delegate(OWNER, 1_000e18);
        _delegate(ALICE, 1_000e18);
        _beEmpty(OWNER);
        _set(OWNER, COLD);
        uint256 requests;
        uint256 rewards;
        for (uint256 i = 0; i < steps.length; ++i) {
            address payee = _current();
            uint256 had = token.balanceOf(payee);
            uint256 paid;
            uint256 kind = steps[i] % 7;
            bool byNode = steps[i] & 1 << 128 != 0;
            (uint256 shares,) = _position(OWNER);
            uint256 due = _claimable(OWNER);
            vm.prank(byNode ? OWNER : payee);
            if (kind == 0 && shares > 1) {
                ++requests;
                if (byNode) staking.startUnbonding(OWNER, ROLE, shares / 2);
                else staking.startUnbondingFor(OWNER, ROLE, shares / 2);
            } else if (kind == 1 && requests > 0) {
                bytes memory call = byNode
                    ? abi.encodeCall(IStaking.withdraw, ((steps[i] >> 8) % requests))
                    : abi.encodeCall(IStaking.withdrawFor, (OWNER, (steps[i] >> 8) % requests));
                (bool isDone, bytes memory answer) = address(staking).call(call);
                if (isDone) paid = abi.decode(answer, (uint256));
            } else if (kind == 2 && due > 0) {
                paid = byNode ? staking.claim(OWNER, ROLE) : staking.claimFor(OWNER, ROLE);
                rewards -= paid;
            } else {
                vm.stopPrank();
                if (kind == 3) {
                    _lock(staking.stakeOf(OWNER, ROLE).free / 3);
                    uint256 supply = token.totalSupply();
                    uint256 burnt = _slash(1e18);
                    rewards -= supply - token.totalSupply() - burnt;
                    staking.unlock(OWNER, ROLE, staking.stakeOf(OWNER, ROLE).locked);
                }
                if (kind == 4) _set(payee, payee == COLD ? NEXT : COLD);
                if (kind == 5) _wait(steps[i] & 2 << 128 != 0 ? UNBONDING : UNBONDING / 3);
                if (kind == 6) {
                    _reward(9e18);
                    rewards += 9e18;
                }
                continue;
            }
            vm.stopPrank();
            vm.assertEq(token.balanceOf(payee), had + paid);
            vm.assertEq(token.balanceOf(OWNER), 0);
            _assertConserved(rewards);
        }
    }
}

/// @notice A thief has the node's key, and an address was set before.
contract StolenKeyTest is WithdrawalFixture {
    uint256 private _earlier;

    function setUp() public override {
        super.setUp();
        vm.prank(OWNER);
        staking.register(OTHER_ROLE, 0, 0);
        _delegate(OWNER, 1_000);
        _delegate(ALICE, 1_000);
        _beEmpty(OWNER);
        _earlier = _unbond(OWNER, 100);
        _set(OWNER, COLD);
    }

    function test_stolenKey_cannotChangeTheAddress() public {
        _refuse(OWNER, EVE);
        _refuse(OWNER, OWNER);
        _wait(10 * UNBONDING);
        _refuse(OWNER, EVE);
    }

    function test_stolenKey_cannotStopAChange() public {
        _set(COLD, NEXT);
        _refuse(OWNER, COLD);
        _wait(UNBONDING);
        vm.assertEq(_current(), NEXT);
    }

    function test_stolenKey_cannotTakeStake_alsoOfARequestBeforeTheAddress() public {
        uint256 later = _unbondAll(OWNER);
        _wait(UNBONDING);
        vm.assertEq(_withdraw(OWNER, _earlier), 100);
        vm.assertEq(_withdraw(OWNER, later), 900);
        vm.assertEq(token.balanceOf(OWNER), 0);
        vm.assertEq(token.balanceOf(COLD), 1_000);
    }

    function test_stolenKey_cannotTakeRewards_alsoAmongOthers() public {
        vm.prank(BOB);
        staking.register(ROLE, 0, 0);
        token.transfer(OWNER, 100);
        _delegate(OWNER, BOB, 100);
        _reward(BOB, 70);
        _earn(1_900);
        uint256 own = _claimable(OWNER);
        (,, uint256 other) = staking.positionOf(OWNER, BOB, ROLE);
        vm.assertGt(own, 1_900 / 10);
        vm.assertGt(other, 0);
        IStaking.NodeId[] memory nodes = new IStaking.NodeId[](2);
        (nodes[0], nodes[1]) = (IStaking.NodeId(OWNER, ROLE), IStaking.NodeId(BOB, ROLE));
        vm.prank(OWNER);
        vm.assertEq(staking.claimMany(nodes), own + other);
        vm.assertEq(token.balanceOf(COLD), own);
        vm.assertEq(token.balanceOf(OWNER), other); // of its stake in another node, which is the account's
        vm.expectRevert(abi.encodeWithSelector(IStaking.NothingToClaim.selector, OWNER));
        vm.prank(OWNER);
        staking.claimMany(nodes);
    }

    function test_stolenKey_cannotRedelegateToWithdrawElsewhere() public {
        vm.prank(EVE);
        staking.register(ROLE, 10_000, 0);
        _wait(UNBONDING);
        bytes memory refusal = abi.encodeWithSelector(IStaking.PaidElsewhere.selector, _earlier, COLD);
        vm.startPrank(OWNER);
        vm.expectRevert(refusal);
        staking.redelegate(_earlier, EVE, ROLE);
        vm.expectRevert(refusal);
        staking.redelegate(_earlier, OWNER, OTHER_ROLE); // that node has no address
        vm.stopPrank();
    }

    function test_stolenKey_cannotHoldBackAnOwnerThatLeaves() public {
        vm.prank(COLD);
        uint256 request = staking.startUnbondingFor(OWNER, ROLE, 900);
        vm.assertEq(staking.stakeOf(OWNER, ROLE).free, 1_000); // Alice's; joining asks for own stake
        _wait(UNBONDING);
        vm.expectRevert(abi.encodeWithSelector(IStaking.PaidElsewhere.selector, request, COLD));
        vm.prank(OWNER);
        staking.redelegate(request, OWNER, ROLE);
        vm.prank(COLD);
        vm.assertEq(staking.withdrawFor(OWNER, request), 900);
        vm.assertEq(token.balanceOf(COLD), 900);
    }

    function test_stolenKey_canUnbondStakeLowerTheCommissionAndLoseBonds() public {
        _unbondAll(OWNER);
        vm.assertEq(staking.stakeOf(OWNER, ROLE).active, 1_000);
        vm.prank(OWNER);
        staking.setCommission(ROLE, 0);
        _lock(500); // of tasks that the thief joins
        _slash(500);
        vm.assertEq(staking.stakeOf(OWNER, ROLE).unbonding, 750);
        vm.assertEq(token.balanceOf(OWNER), 0);
    }

    function test_lostKey_locksNothing() public {
        _earn(1_000);
        uint256 due = _claimable(OWNER);
        vm.startPrank(COLD);
        vm.assertEq(staking.claimFor(OWNER, ROLE), due);
        uint256 request = staking.startUnbondingFor(OWNER, ROLE, 900);
        _wait(UNBONDING);
        vm.assertEq(staking.withdrawFor(OWNER, _earlier) + staking.withdrawFor(OWNER, request), 1_000);
        vm.stopPrank();
        vm.assertEq(token.balanceOf(COLD), 1_000 + due);
    }

    function test_lostKey_stakeInOtherNodesIsTheAccounts() public {
        vm.prank(BOB);
        staking.register(ROLE, 0, 0);
        token.transfer(OWNER, 100);
        _delegate(OWNER, BOB, 100);
        vm.prank(OWNER);
        uint256 request = staking.startUnbonding(BOB, ROLE, 100);
        _wait(UNBONDING);
        vm.expectRevert(abi.encodeWithSelector(IStaking.PaidElsewhere.selector, request, OWNER));
        vm.prank(COLD);
        staking.withdrawFor(OWNER, request);
        vm.assertEq(_withdraw(OWNER, request), 100);
        vm.assertEq(token.balanceOf(OWNER), 100);
    }

    function test_for_refusesEverybodyElse(address stranger) public {
        vm.assume(stranger != COLD);
        _earn(1_000);
        _wait(UNBONDING);
        bytes memory refusal = abi.encodeWithSelector(IStaking.OnlyWithdrawalAddress.selector, OWNER, ROLE, stranger);
        vm.startPrank(stranger);
        vm.expectRevert(refusal);
        staking.startUnbondingFor(OWNER, ROLE, 1);
        vm.expectRevert(refusal);
        staking.claimFor(OWNER, ROLE);
        vm.expectRevert(abi.encodeWithSelector(IStaking.PaidElsewhere.selector, _earlier, COLD));
        staking.withdrawFor(OWNER, _earlier);
        vm.stopPrank();
    }

    function test_delegators_areUntouched() public {
        uint256 request = _unbond(ALICE, 400);
        _earn(1_000);
        _wait(UNBONDING);
        uint256 had = token.balanceOf(ALICE);
        uint256 due = _claimable(ALICE);
        vm.assertGt(due, 0);
        vm.assertEq(_claim(ALICE), due);
        vm.assertEq(_withdraw(ALICE, request), 400);
        vm.assertEq(token.balanceOf(ALICE), had + due + 400);
        vm.assertEq(token.balanceOf(COLD), 0);
    }

    function test_slash_reachesARequestBeforeItIsPaid() public {
        _lock(1_900);
        _slash(1_900);
        _wait(UNBONDING);
        vm.assertEq(_withdraw(OWNER, _earlier), 5);
        vm.assertEq(token.balanceOf(COLD), 5);
    }

    // Contract wallets.

    function test_contractWallet_isPaidAndLeaves() public {
        Wallet wallet = new Wallet();
        _set(COLD, address(wallet));
        _wait(UNBONDING);
        _earn(1_000);
        uint256 due = _claimable(OWNER);
        wallet.execute(address(staking), abi.encodeCall(IStaking.claimFor, (OWNER, ROLE)));
        vm.assertEq(token.balanceOf(address(wallet)), due);
        wallet.execute(address(staking), abi.encodeCall(IStaking.withdrawFor, (OWNER, _earlier)));
        vm.assertEq(token.balanceOf(address(wallet)), due + 100);
        wallet.execute(address(staking), abi.encodeCall(IStaking.setWithdrawalAddress, (OWNER, ROLE, COLD)));
        _wait(UNBONDING);
        vm.assertEq(_current(), COLD);
    }

    function test_contractWallet_delegatesHoldsAndClaims() public {
        Wallet wallet = new Wallet();
        token.transfer(address(wallet), 500);
        wallet.execute(address(token), abi.encodeCall(token.approve, (address(staking), 500)));
        wallet.execute(address(staking), abi.encodeCall(IStaking.delegate, (OWNER, ROLE, 500)));
        _earn(1_000);
        uint256 due = _claimable(address(wallet));
        vm.assertGt(due, 0);
        wallet.execute(address(staking), abi.encodeCall(IStaking.claim, (OWNER, ROLE)));
        bytes memory made =
            wallet.execute(address(staking), abi.encodeCall(IStaking.startUnbonding, (OWNER, ROLE, 500)));
        _wait(UNBONDING);
        wallet.execute(address(staking), abi.encodeCall(IStaking.withdraw, (abi.decode(made, (uint256)))));
        vm.assertEq(token.balanceOf(address(wallet)), due + 500);
    }
}
