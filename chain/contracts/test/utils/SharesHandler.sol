// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../../src/interfaces/IStaking.sol";
import {EnsemblesFixture} from "./EnsemblesFixture.sol";
import {IChannels} from "../../src/interfaces/IChannels.sol";

/// @notice Buyers, holders, nodes and strangers of two tasks' parts and of their ensemble, and a person that sends tokens
///         for nothing. No call here may revert, except where a refusal is what must come.
contract SharesHandler is EnsemblesFixture {
    uint256 public constant HOLDERS = 3;
    uint256 private constant WHOLE = 1 << 64;

    uint256 public claimed;
    uint256 public sold; // payments of both tasks, less servers' fees
    uint256 public donated;
    mapping(uint256 task => uint256) public soldOf;
    uint256 public constant BUYERS = 2;
    uint256 public inChannels; // deposited, and neither redeemed nor withdrawn

    /// @dev Two tasks of other terms and gains: 4,000 and 900.
    function start() external {
        setUp();
        for (uint256 task = 1; task <= 2; ++task) {
            _begin(_params());
            _runRound(task == 1 ? int64(3_000) : int64(800));
            _runRound(task == 1 ? int64(1_000) : int64(100));
            _showAndMint();
        }
        vm.assertEq(modelShares.formEnsemble(_pair(1, 2)), FIRST);
        vm.prank(OPERATOR);
        token.approve(address(tasks), 0);
    }

    function holder(uint256 i) public pure returns (address) {
        return i % HOLDERS == 0 ? OPERATOR : address(uint160(0x40000 + i % HOLDERS));
    }

    /// @dev One of the tasks, or the ensemble.
    function _number(uint256 which) private pure returns (uint256) {
        return which % 3 == 2 ? FIRST : 1 + which % 3;
    }

    /// @dev A sale that moved `amount`: what it brings each task, by the formula of the documentation. Returns the fee.
    function _count(uint256 number, uint256 amount) private returns (uint256 fee) {
        uint256[3] memory parts;
        if (number == FIRST) (parts[1], parts[2]) = (amount * 4_000 / 4_900, amount - amount * 4_000 / 4_900);
        else parts[number] = amount;
        for (uint256 task = 1; task <= 2; ++task) {
            uint256 own = parts[task] * _serverPercent(task) / 100;
            soldOf[task] += parts[task] - own;
            fee += own;
        }
        sold += amount - fee;
    }

    // Calls.

    function pays(uint256 which, uint256 amount) external {
        amount = 1 + amount % (which % 3 == 0 ? 10 : 100e18);
        if (token.balanceOf(address(this)) < amount) return;
        id = 1 + which % 2;
        _pay(amount);
        sold += amount;
        soldOf[id] += amount;
    }

    function claims(uint256 which, uint256 who) external {
        (id, who) = (1 + which % 2, who % HOLDERS);
        uint256 owed = modelShares.claimable(id, holder(who));
        if (owed == 0) return;
        uint256 before = token.balanceOf(holder(who));
        vm.prank(holder(who));
        modelShares.claim(id);
        vm.assertEq(token.balanceOf(holder(who)) - before, owed);
        claimed += owed;
    }

    function claimsForPool(uint256 which, uint256 who) external {
        id = 1 + which % 2;
        (address node, IStaking.Role role) = _node(who);
        uint256 owed = modelShares.claimable(id, modelShares.poolAddress(node, role));
        if (owed == 0) return;
        uint256 before = token.balanceOf(address(staking));
        modelShares.claimForPool(_list(id), node, role);
        vm.assertEq(token.balanceOf(address(staking)) - before, owed);
        claimed += owed;
    }

    function transfers(uint256 which, uint256 from, uint256 to, uint256 parts) external {
        id = 1 + which % 2;
        uint256 held = modelShares.balanceOf(holder(from), id);
        parts = parts % 4 == 0 ? held : parts % (held + 1);
        vm.prank(holder(from));
        modelShares.safeTransferFrom(holder(from), holder(to), id, parts, "");
    }

    /// @dev Some payments wait in the till for later ones.
    function buys(uint256 which, uint256 amount) external {
        amount = 1 + amount % (which % 3 == 0 ? 10 : 10e18);
        if (token.balanceOf(address(this)) < amount) return;
        id = _number(which / 15); // apart from the two other choices
        address till = modelShares.tillOf(id, BUYER);
        token.transfer(till, amount);
        if (which % 5 == 0) return;
        uint256 held = token.balanceOf(till);
        uint256 before = token.balanceOf(BUYER);
        modelShares.split(id, BUYER);
        vm.assertEq(token.balanceOf(BUYER) - before, _count(id, held));
    }

    function deposits(uint256 which, uint256 who, uint256 amount) external {
        amount = 1 + amount % (which % 3 == 0 ? 10 : 10e18);
        if (token.balanceOf(address(this)) < amount) return;
        id = _number(which);
        _deposit(who % BUYERS, amount);
        inChannels += amount;
    }

    /// @dev By part of a deposit, or all, beside another buyer's voucher of more than its deposit, and the same once more.
    ///      All three again are refused.
    function redeems(uint256 which, uint256 who, uint256 amount) external {
        (id, who) = (_number(which), who % BUYERS);
        IChannels.Channel memory own = modelShares.channel(id, SERVER, _buyer(who));
        if (own.deposited == own.redeemed) return;
        uint256 owed = own.redeemed + 1 + amount % (own.deposited - own.redeemed);
        uint256 other = (who + 1) % BUYERS;
        IChannels.Voucher[] memory vouchers = new IChannels.Voucher[](3);
        vouchers[0] = _voucher(other, uint256(modelShares.channel(id, SERVER, _buyer(other)).deposited) + 1);
        (vouchers[1], vouchers[2]) = (_voucher(who, owed), _voucher(who, owed));
        uint256 before = token.balanceOf(SERVER);
        (uint256 moved, uint256 fee) = modelShares.redeem(id, SERVER, vouchers);
        vm.assertEq(moved, owed - own.redeemed);
        vm.assertEq(fee, _count(id, moved));
        vm.assertEq(token.balanceOf(SERVER) - before, fee);
        (bool ok,) = address(modelShares).call(abi.encodeCall(modelShares.redeem, (id, SERVER, vouchers)));
        vm.assertFalse(ok);
        inChannels -= moved;
    }

    /// @dev Begins to close a channel, or takes its rest once a day has passed.
    function closes(uint256 which, uint256 who) external {
        (id, who) = (_number(which), who % BUYERS);
        IChannels.Channel memory own = modelShares.channel(id, SERVER, _buyer(who));
        vm.startPrank(_buyer(who));
        if (own.closesAt == 0) {
            modelShares.close(id, SERVER);
        } else if (block.timestamp >= own.closesAt) {
            vm.assertEq(modelShares.withdraw(id, SERVER), own.deposited - own.redeemed);
            inChannels -= own.deposited - own.redeemed;
        } else {
            (bool ok,) = address(modelShares).call(abi.encodeCall(modelShares.withdraw, (id, SERVER)));
            vm.assertFalse(ok);
        }
        vm.stopPrank();
    }

    function donates(uint256 amount) external {
        amount %= 1e18;
        if (token.balanceOf(address(this)) < amount) return;
        token.transfer(address(modelShares), amount);
        donated += amount;
    }

    function waits(uint256 time) external {
        vm.warp(block.timestamp + time % (2 * VESTING));
    }

    /// @dev Strangers, who have no parts, and whose tokens are nobody's to take.
    function strangerTries(uint256 which) external {
        id = 1 + which % 2;
        vm.startPrank(STRANGER);
        (bool ok,) = address(modelShares).call(abi.encodeCall(modelShares.claim, (id)));
        vm.assertFalse(ok);
        (ok,) = address(modelShares).call(abi.encodeCall(modelShares.mint, (id, which)));
        vm.assertFalse(ok);
        (ok,) = address(modelShares).call(abi.encodeCall(modelShares.pay, (id, 1)));
        vm.assertFalse(ok);
        (ok,) = address(modelShares).call(abi.encodeCall(modelShares.pay, (FIRST, 1)));
        vm.assertFalse(ok);
        (ok,) = address(modelShares).call(abi.encodeCall(modelShares.formEnsemble, (_pair(1, 2))));
        vm.assertFalse(ok);
        (ok,) = address(staking).call(abi.encodeCall(staking.give, (_hospital(0), IStaking.Role.Hospital, 1)));
        vm.assertFalse(ok);
        address from = modelShares.poolAddress(_hospital(0), IStaking.Role.Hospital);
        (ok,) = address(modelShares).call(abi.encodeCall(modelShares.safeTransferFrom, (from, STRANGER, id, 1, "")));
        vm.assertFalse(ok);
        vm.stopPrank();
    }

    // Checks.

    /// @dev Channels' deposits are whole, sums of parts are the whole, and payments what holders claimed and can claim: fractions of a unit are left.
    function check() external view {
        uint256 owed;
        for (uint256 task = 1; task <= 2; ++task) {
            uint256 parts;
            for (uint256 i = 0; i < HOLDERS; ++i) {
                parts += modelShares.balanceOf(holder(i), task);
                owed += modelShares.claimable(task, holder(i));
            }
            for (uint256 i = 0; i < HOSPITALS + VOTERS; ++i) {
                (address node, IStaking.Role role) = _node(i);
                parts += modelShares.balanceOf(modelShares.poolAddress(node, role), task);
                owed += modelShares.claimable(task, modelShares.poolAddress(node, role));
            }
            vm.assertEq(parts, WHOLE);
            vm.assertEq(modelShares.paid(task), soldOf[task]);
        }
        vm.assertEq(modelShares.paid(FIRST), 0);
        vm.assertLe(claimed + owed, sold);
        vm.assertLe(sold, claimed + owed + 2 * (HOLDERS + HOSPITALS + VOTERS) - 1);
        vm.assertEq(token.balanceOf(address(modelShares)), donated + sold + inChannels - claimed);
    }

    /// @dev Everybody takes out all that is theirs. Fractions of a unit are left.
    function checkEnds() external {
        for (uint256 task = 1; task <= 2; ++task) {
            for (uint256 i = 0; i < HOLDERS; ++i) {
                this.claims(task - 1, i);
            }
            for (uint256 i = 0; i < HOSPITALS + VOTERS; ++i) {
                this.claimsForPool(task - 1, i);
            }
        }
        this.check();
        vm.assertLe(sold - claimed, 2 * (HOLDERS + HOSPITALS + VOTERS) - 1);
    }

    function _node(uint256 i) private pure returns (address, IStaking.Role) {
        i %= HOSPITALS + VOTERS;
        if (i < HOSPITALS) return (_hospital(i), IStaking.Role.Hospital);
        return (_voter(i - HOSPITALS), IStaking.Role.Voter);
    }

    function _list(uint256 task) private pure returns (uint256[] memory list) {
        list = new uint256[](1);
        list[0] = task;
    }
}
