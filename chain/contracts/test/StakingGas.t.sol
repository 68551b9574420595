// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../src/interfaces/IStaking.sol";
import {GasMeter} from "./utils/GasMeter.sol";
import {StakingFixture} from "./utils/StakingFixture.sol";

/// @dev A node in the midst of its work: stake of two, bonds, a reward that vests, a commission already earned.
///      Allowances are of what is delegated, as cautious wallets set them.
abstract contract StakingGasFixture is StakingFixture, GasMeter {
    uint256 internal constant AMOUNT = 1_234.567891234567891e18;

    function setUp() public virtual override {
        super.setUp();
        _delegate(OWNER, 1_000e18);
        _delegate(ALICE, 2_345e18);
        _lock(500e18);
        _reward(100e18);
        _wait(VESTING / 3);
        _reward(10e18);
        _wait(VESTING / 3);
        vm.prank(BOB);
        token.approve(address(staking), AMOUNT);
    }

    function _meter(string memory name, address sender, bytes memory data) internal returns (uint256) {
        return _measure("staking", name, sender, address(staking), data);
    }
}

contract DelegateGasTest is StakingGasFixture {
    function test_delegate_costsLessThan120kForTheFirst() public {
        bytes memory data = abi.encodeCall(IStaking.delegate, (OWNER, ROLE, AMOUNT));
        vm.assertLe(_meter("delegate, first of a delegator", BOB, data), 120_000);
    }

    function test_delegate_costsNoMoreLater() public {
        bytes memory data = abi.encodeCall(IStaking.delegate, (OWNER, ROLE, AMOUNT));
        vm.assertLe(_meter("delegate, more", ALICE, data), 105_000);
    }

    function test_code_fitsAChain() public view {
        vm.assertLe(address(staking).code.length, 24_576);
    }
}

contract HeldOutGasTest is StakingGasFixture {
    function test_commitHeldOut_costsLessThan25k() public {
        bytes memory data = abi.encodeCall(IStaking.commitHeldOut, (keccak256("a root")));
        vm.assertLe(_meter("commitHeldOut", OWNER, data), 25_000);
    }
}

contract DelegateAfterWipeGasTest is StakingGasFixture {
    function setUp() public override {
        super.setUp();
        _lock(staking.stakeOf(OWNER, ROLE).free);
        _slash(type(uint256).max);
        _delegate(ALICE, 1e18);
        _reward(100e18);
        _wait(VESTING / 2);
    }

    function test_delegate_costsLessThan140kInALaterGeneration() public {
        bytes memory data = abi.encodeCall(IStaking.delegate, (OWNER, ROLE, AMOUNT));
        vm.assertLe(_meter("delegate, first of a delegator, node once wiped out", BOB, data), 140_000);
    }
}

contract ClaimGasTest is StakingGasFixture {
    function setUp() public override {
        super.setUp();
        // To an account without tokens, which costs most.
        vm.startPrank(ALICE);
        token.transfer(address(this), token.balanceOf(ALICE));
        vm.stopPrank();
    }

    function test_claim_costsLessThan90k() public {
        bytes memory data = abi.encodeCall(IStaking.claim, (OWNER, ROLE));
        vm.assertLe(_meter("claim, to an account without tokens", ALICE, data), 90_000);
    }

    function test_claim_costsLessThan90kForTheOwner() public {
        bytes memory data = abi.encodeCall(IStaking.claim, (OWNER, ROLE));
        vm.assertLe(_meter("claim, by the owner", OWNER, data), 90_000);
    }

    function test_claim_costsLessThan95kToAWithdrawalAddress() public {
        vm.prank(OWNER);
        staking.setWithdrawalAddress(OWNER, ROLE, BOB);
        bytes memory data = abi.encodeCall(IStaking.claim, (OWNER, ROLE));
        vm.assertLe(_meter("claim, by the owner, to its withdrawal address", OWNER, data), 95_000);
    }

    function test_setWithdrawalAddress_costsLessThan65kForTheFirst() public {
        bytes memory data = abi.encodeCall(IStaking.setWithdrawalAddress, (OWNER, ROLE, BOB));
        vm.assertLe(_meter("setWithdrawalAddress, first", OWNER, data), 65_000);
    }
}

contract UnbondGasTest is StakingGasFixture {
    uint256 private _mature;

    function setUp() public override {
        super.setUp();
        _mature = _unbond(ALICE, 100e18);
        _wait(UNBONDING);
    }

    /// @dev An owner's request also records its own unbonding shares, which costs 22,100 gas once.
    function test_startUnbonding_costsLessThan180kForTheFirst() public {
        bytes memory data = abi.encodeCall(IStaking.startUnbonding, (OWNER, ROLE, 100e18));
        vm.assertLe(_meter("startUnbonding, first of an owner", OWNER, data), 180_000);
    }

    function test_withdraw_costsLessThan90k() public {
        vm.assertLe(_meter("withdraw", ALICE, abi.encodeCall(IStaking.withdraw, (_mature))), 90_000);
    }

    function test_redelegate_costsLessThan100k() public {
        bytes memory data = abi.encodeCall(IStaking.redelegate, (_mature, OWNER, ROLE));
        vm.assertLe(_meter("redelegate", ALICE, data), 100_000);
    }
}

/// @dev The calls of a settlement for each node.
contract RewardGasTest is StakingGasFixture {
    uint256 private constant NODES = 8;

    function setUp() public override {
        super.setUp();
        for (uint256 i = 0; i < NODES; ++i) {
            vm.prank(_node(i));
            staking.register(ROLE, COMMISSION, 0);
            _delegate(ALICE, _node(i), 10e18);
            _reward(_node(i), 1e18);
            _wait(60);
            _reward(_node(i), 1e18);
        }
        _wait(60);
    }

    function test_reward_costsLessThan25kANode() public {
        IStaking.Reward[] memory rewards = new IStaking.Reward[](NODES);
        for (uint256 i = 0; i < NODES; ++i) {
            rewards[i] = IStaking.Reward(_node(i), ROLE, 1e18);
        }
        bytes memory data = abi.encodeCall(IStaking.reward, (rewards));
        vm.assertLe(_meter("reward, eight nodes", address(this), data), 21_000 + 30_000 + NODES * 25_000);
    }

    function test_slash_costsLessThan80k() public {
        bytes memory data = abi.encodeCall(IStaking.slash, (OWNER, ROLE, 100e18));
        vm.assertLe(_meter("slash", address(this), data), 80_000);
    }

    function test_lock_costsLessThan45k() public {
        bytes memory data = abi.encodeCall(IStaking.lock, (OWNER, ROLE, 100e18));
        vm.assertLe(_meter("lock", address(this), data), 45_000);
    }

    function _node(uint256 i) private pure returns (address) {
        return address(uint160(0xD0001 + i));
    }
}
