// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ERC3009} from "@openzeppelin/contracts/token/ERC20/extensions/draft-ERC3009.sol";
import {IERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Permit.sol";
import {IChannels} from "../src/interfaces/IChannels.sol";
import {IModelShares} from "../src/interfaces/IModelShares.sol";
import {ChannelsFixture} from "./utils/ChannelsFixture.sol";
import {HostileToken} from "./utils/HostileToken.sol";

contract ChannelsTest is ChannelsFixture {
    function setUp() public override {
        super.setUp();
        _playAndMint();
        _deposit(0, 1_000);
    }

    // Vouchers.

    /// @dev The server gets its percent rounded down, once for all buyers, and the holders each unit of the rest.
    function test_redeem_splitsTheSumOfAllBuyers(uint96 first, uint96 second) public {
        (first, second) = (uint96(_bound(first, 1, 1e23)), uint96(_bound(second, 1, 1e23)));
        _deposit(0, first);
        _deposit(1, second);
        IChannels.Voucher[] memory vouchers = new IChannels.Voucher[](2);
        (vouchers[0], vouchers[1]) = (_voucher(0, first), _voucher(1, second));
        vm.prank(STRANGER);
        (uint256 amount, uint256 fee) = modelShares.redeem(id, SERVER, vouchers);
        vm.assertEq(amount, uint256(first) + second);
        vm.assertEq(fee, amount * 20 / 100);
        vm.assertEq(token.balanceOf(SERVER), fee);
        vm.assertEq(modelShares.paid(id), amount - fee);
        vm.assertEq(token.balanceOf(address(modelShares)), 1_000 + amount - fee);
    }

    /// @dev Each voucher replaces the one before.
    function test_redeem_movesOnlyTheDifference() public {
        (uint256 amount,) = _redeem(0, 400);
        vm.assertEq(amount, 400);
        (amount,) = _redeem(0, 1_000);
        vm.assertEq(amount, 600);
        vm.assertEq(modelShares.channel(id, SERVER, _buyer(0)).redeemed, 1_000);
    }

    function test_redeem_refusesReplayedVouchers() public {
        IChannels.Voucher[] memory again = _only(_voucher(0, 400));
        modelShares.redeem(id, SERVER, again);
        vm.expectRevert(abi.encodeWithSelector(IChannels.VoucherSpent.selector, _buyer(0), 400, 400));
        modelShares.redeem(id, SERVER, again);
        again[0] = _voucher(0, 399);
        vm.expectRevert(abi.encodeWithSelector(IChannels.VoucherSpent.selector, _buyer(0), 399, 400));
        modelShares.redeem(id, SERVER, again);
    }

    /// @dev Twice in one call.
    function test_redeem_paysTheSameVoucherOnce() public {
        IChannels.Voucher[] memory vouchers = new IChannels.Voucher[](2);
        (vouchers[0], vouchers[1]) = (_voucher(0, 400), _voucher(0, 400));
        (uint256 amount,) = modelShares.redeem(id, SERVER, vouchers);
        vm.assertEq(amount, 400);
        vm.expectRevert(abi.encodeWithSelector(IChannels.VoucherSpent.selector, _buyer(0), 400, 400));
        modelShares.redeem(id, SERVER, vouchers);
    }

    /// @dev A buyer redeems, withdraws, or lets a voucher expire just before the server's transaction.
    function test_redeem_movesTheRestIfOneIsWorthless() public {
        IChannels.Voucher[] memory vouchers = _three();
        (vouchers[1], vouchers[2]) = (_voucher(1, 20, uint64(block.timestamp)), _voucher(2, 101));
        modelShares.redeem(id, SERVER, _only(vouchers[0]));
        vm.warp(block.timestamp + 1);
        uint256 before = modelShares.paid(id);
        vm.expectRevert(abi.encodeWithSelector(IChannels.VoucherSpent.selector, _buyer(0), 30, 30));
        modelShares.redeem(id, SERVER, vouchers);
        vouchers[2] = _voucher(2, 100);
        (uint256 amount, uint256 fee) = modelShares.redeem(id, SERVER, vouchers);
        vm.assertEq(amount, 100);
        vm.assertEq(modelShares.paid(id), before + 100 - fee);
        vm.assertEq(modelShares.channel(id, SERVER, _buyer(1)).redeemed, 0);
    }

    /// @dev No honest server has one.
    function test_redeem_refusesAllForAForgedOne() public {
        IChannels.Voucher[] memory vouchers = _three();
        vouchers[1].amount += 1;
        vm.expectPartialRevert(IChannels.VoucherForged.selector);
        modelShares.redeem(id, SERVER, vouchers);
        vm.assertEq(modelShares.channel(id, SERVER, _buyer(0)).redeemed, 0);
    }

    function test_redeem_refusesMoreThanTheDeposit() public {
        IChannels.Voucher[] memory more = _only(_voucher(0, 1_001));
        vm.expectRevert(abi.encodeWithSelector(IChannels.DepositTooSmall.selector, _buyer(0), 1_001, 1_000));
        modelShares.redeem(id, SERVER, more);
    }

    function _three() private returns (IChannels.Voucher[] memory vouchers) {
        _deposit(1, 100);
        _deposit(2, 100);
        vouchers = new IChannels.Voucher[](3);
        (vouchers[0], vouchers[1], vouchers[2]) = (_voucher(0, 30), _voucher(1, 20), _voucher(2, 100));
    }

    function test_redeem_refusesExpiredVouchers() public {
        IChannels.Voucher[] memory late = _only(_voucher(0, 400));
        vm.warp(late[0].expiresAt + 1);
        vm.expectRevert(abi.encodeWithSelector(IChannels.VoucherExpired.selector, _buyer(0), late[0].expiresAt));
        modelShares.redeem(id, SERVER, late);
        vm.warp(late[0].expiresAt);
        modelShares.redeem(id, SERVER, late);
    }

    function test_redeem_refusesVouchersOfAnotherChain() public {
        _assertForged(_digest(block.chainid + 1, address(modelShares), id, SERVER, _buyer(0), 400, _tomorrow()), KEY);
    }

    function test_redeem_refusesVouchersForAnotherContract() public {
        _assertForged(_digest(block.chainid, address(tasks), id, SERVER, _buyer(0), 400, _tomorrow()), KEY);
    }

    function test_redeem_refusesVouchersForAnotherTask() public {
        uint256 first = id;
        _playAndMint();
        _deposit(0, 1_000);
        _assertForged(_digest(block.chainid, address(modelShares), first, SERVER, _buyer(0), 400, _tomorrow()), KEY);
    }

    function test_redeem_refusesVouchersForAnotherServer() public {
        _assertForged(_digest(block.chainid, address(modelShares), id, STRANGER, _buyer(0), 400, _tomorrow()), KEY);
    }

    /// @dev Another amount, another time, and another buyer's key.
    function test_redeem_refusesAlteredVouchers() public {
        _assertForged(_digest(block.chainid, address(modelShares), id, SERVER, _buyer(0), 399, _tomorrow()), KEY);
        _assertForged(_digest(block.chainid, address(modelShares), id, SERVER, _buyer(0), 400, _tomorrow() - 1), KEY);
        _assertForged(_digest(block.chainid, address(modelShares), id, SERVER, _buyer(0), 400, _tomorrow()), KEY + 1);
    }

    /// @dev A malformed signature recovers to address 0, which must not be a buyer.
    function test_redeem_refusesMalformedSignatures(bytes memory signature) public {
        vm.expectPartialRevert(IChannels.VoucherForged.selector);
        modelShares.redeem(id, SERVER, _only(IChannels.Voucher(_buyer(0), 400, _tomorrow(), signature)));
        vm.expectPartialRevert(IChannels.VoucherForged.selector);
        modelShares.redeem(id, SERVER, _only(IChannels.Voucher(address(0), 400, _tomorrow(), signature)));
    }

    function test_redeem_refusesNoVouchers() public {
        vm.expectRevert(abi.encodeWithSelector(IModelShares.AmountIsZero.selector));
        modelShares.redeem(id, SERVER, new IChannels.Voucher[](0));
    }

    function test_voucherDigest_isEip712s(uint96 amount, uint64 time, address buyer) public view {
        bytes32 wanted = _digest(block.chainid, address(modelShares), id, SERVER, buyer, amount, time);
        vm.assertEq(modelShares.voucherDigest(id, SERVER, buyer, amount, time), wanted);
    }

    // Deposits.

    function test_deposit_addsUp() public {
        _deposit(0, 500);
        vm.assertEq(modelShares.channel(id, SERVER, _buyer(0)).deposited, 1_500);
        _redeem(0, 1_500);
    }

    function test_deposit_refusesATaskWithoutParts() public {
        vm.expectRevert(abi.encodeWithSelector(IModelShares.NotMinted.selector, id + 1));
        modelShares.deposit(id + 1, SERVER, 1);
        vm.expectRevert(abi.encodeWithSelector(IModelShares.NotMinted.selector, id + 1));
        modelShares.offer(id + 1, 1, "https://example.org");
    }

    function test_depositFor_takesTheBuyersSignature() public {
        IChannels.Authorization memory consent = _consent(SERVER, 700);
        vm.prank(STRANGER);
        modelShares.depositFor(_buyer(0), id, SERVER, 700, consent);
        vm.assertEq(modelShares.channel(id, SERVER, _buyer(0)).deposited, 1_700);
        vm.expectPartialRevert(ERC3009.ERC3009UsedAuthorization.selector);
        modelShares.depositFor(_buyer(0), id, SERVER, 700, consent);
    }

    /// @dev The nonce binds the money to one channel.
    function test_depositFor_refusesAnotherChannelOrAmount() public {
        IChannels.Authorization memory consent = _consent(STRANGER, 700);
        vm.expectPartialRevert(ERC3009.ERC3009InvalidSignature.selector);
        modelShares.depositFor(_buyer(0), id, SERVER, 700, consent);
        vm.expectPartialRevert(ERC3009.ERC3009InvalidSignature.selector);
        modelShares.depositFor(_buyer(0), id, STRANGER, 699, consent);
        vm.expectPartialRevert(ERC3009.ERC3009InvalidSignature.selector);
        modelShares.depositFor(_buyer(1), id, STRANGER, 700, consent);
        modelShares.depositFor(_buyer(0), id, STRANGER, 700, consent);
    }

    // Closing.

    function test_withdraw_waitsADayAndTakesTheRest() public {
        vm.startPrank(_buyer(0));
        vm.expectRevert(abi.encodeWithSelector(IChannels.ChannelOpen.selector, 0));
        modelShares.withdraw(id, SERVER);
        modelShares.close(id, SERVER);
        vm.stopPrank();
        _redeem(0, 400); // the server has its day
        vm.warp(block.timestamp + 1 days - 1);
        vm.startPrank(_buyer(0));
        vm.expectRevert(abi.encodeWithSelector(IChannels.ChannelOpen.selector, block.timestamp + 1));
        modelShares.withdraw(id, SERVER);
        vm.warp(block.timestamp + 1);
        vm.assertEq(modelShares.withdraw(id, SERVER), 600);
        vm.assertEq(token.balanceOf(_buyer(0)), 600);
        vm.expectRevert(abi.encodeWithSelector(IChannels.ChannelOpen.selector, 0));
        modelShares.withdraw(id, SERVER);
        vm.stopPrank();
    }

    /// @dev An old voucher cannot be redeemed twice by closing and depositing again.
    function test_withdraw_keepsWhatWasRedeemed() public {
        IChannels.Voucher[] memory old = _only(_voucher(0, 400));
        modelShares.redeem(id, SERVER, old);
        vm.startPrank(_buyer(0));
        modelShares.close(id, SERVER);
        vm.warp(block.timestamp + 1 days);
        modelShares.withdraw(id, SERVER);
        vm.stopPrank();
        _deposit(0, 1_000);
        vm.warp(old[0].expiresAt);
        vm.expectRevert(abi.encodeWithSelector(IChannels.VoucherSpent.selector, _buyer(0), 400, 400));
        modelShares.redeem(id, SERVER, old);
        _redeem(0, 1_400);
    }

    function test_deposit_opensAClosingChannelAgain() public {
        vm.prank(_buyer(0));
        modelShares.close(id, SERVER);
        _deposit(0, 1);
        vm.warp(block.timestamp + 2 days);
        vm.prank(_buyer(0));
        vm.expectRevert(abi.encodeWithSelector(IChannels.ChannelOpen.selector, 0));
        modelShares.withdraw(id, SERVER);
    }

    // Offers.

    function test_offer_refusesLongUrls() public {
        bytes memory long = new bytes(257);
        vm.expectRevert(abi.encodeWithSelector(IChannels.UrlTooLong.selector, 257, 256));
        modelShares.offer(id, 1, string(long));
        vm.expectEmit(address(modelShares));
        emit IChannels.Offered(id, address(this), 5, "https://example.org");
        modelShares.offer(id, 5, "https://example.org");
    }

    // Tokens that are not ours.

    /// @dev The contract counts only what arrived, and refuses a token that keeps a fee or calls it back.
    function test_pay_refusesATokenThatKeepsAFee() public {
        _etch(HostileToken.Trick.Fee);
        vm.startPrank(_buyer(0));
        vm.expectRevert(abi.encodeWithSelector(IChannels.AmountDiffers.selector, 100, 99));
        modelShares.deposit(id, SERVER, 100);
        vm.expectRevert(abi.encodeWithSelector(IChannels.AmountDiffers.selector, 100, 99));
        modelShares.pay(id, 100);
        vm.stopPrank();
    }

    /// @dev A call back within a transfer finds books that are already written.
    function test_redeem_survivesATokenThatCallsBack() public {
        IChannels.Voucher[] memory vouchers = _only(_voucher(0, 400));
        _etch(HostileToken.Trick.CallBack);
        HostileToken hostile = HostileToken(address(token));
        hostile.arm(address(modelShares), abi.encodeCall(IChannels.redeem, (id, SERVER, vouchers)));
        modelShares.redeem(id, SERVER, vouchers);
        vm.assertTrue(hostile.wasRefused());
        vm.assertEq(modelShares.channel(id, SERVER, _buyer(0)).redeemed, 400);
    }

    /// @dev A payment inside a payment would count one arrival twice.
    function test_pay_refusesAPaymentInsideAPayment() public {
        _etch(HostileToken.Trick.CallBack);
        HostileToken hostile = HostileToken(address(token));
        hostile.arm(address(modelShares), abi.encodeCall(IModelShares.pay, (id, 50)));
        vm.prank(_buyer(0));
        vm.expectPartialRevert(IChannels.AmountDiffers.selector);
        modelShares.pay(id, 100);
    }

    // Helpers.

    function _tomorrow() private view returns (uint64) {
        return uint64(block.timestamp + 1 days);
    }

    function _assertForged(bytes32 digest, uint256 key) private {
        IChannels.Voucher memory voucher = IChannels.Voucher(_buyer(0), 400, _tomorrow(), _signed(key, digest));
        vm.expectPartialRevert(IChannels.VoucherForged.selector);
        modelShares.redeem(id, SERVER, _only(voucher));
    }

    function _consent(address server, uint256 amount) private returns (IChannels.Authorization memory) {
        token.transfer(_buyer(0), amount);
        bytes32 salt = bytes32(uint256(7));
        bytes32 kind = keccak256(
            "ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
        );
        bytes32 nonce = keccak256(abi.encode(id, server, salt));
        bytes32 message =
            keccak256(abi.encode(kind, _buyer(0), address(modelShares), amount, 0, block.timestamp + 60, nonce));
        bytes32 digest = keccak256(bytes.concat("\x19\x01", IERC20Permit(address(token)).DOMAIN_SEPARATOR(), message));
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(KEY, digest);
        return IChannels.Authorization(0, block.timestamp + 60, salt, v, r, s);
    }

    /// @dev Puts a hostile token in the real one's place, with the books that it had.
    function _etch(HostileToken.Trick trick) private {
        uint256 held = token.balanceOf(address(modelShares));
        vm.etch(address(token), address(new HostileToken()).code);
        HostileToken hostile = HostileToken(address(token));
        hostile.start(trick);
        hostile.give(address(modelShares), held);
        hostile.give(_buyer(0), 1_000);
        hostile.give(address(hostile), 1_000);
    }
}
