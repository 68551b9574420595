// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Pool} from "../src/types/Pool.sol";
import {StakingFixture} from "./utils/StakingFixture.sol";

/// @notice The contract does what tests/chain/pool_reference.py, which has no index and no price, says it does.
contract StakingVectorsTest is StakingFixture {
    uint256 private constant ACTORS = 4;

    uint256 private _start;
    mapping(string column => uint256[]) private _columns;

    function setUp() public override {}

    function test_ordinaryAmounts_agreeWithTheReference() public {
        _play(0, "ordinary amounts");
    }

    function test_aFewWei_agreeWithTheReference() public {
        _play(1, "a few wei");
    }

    function test_totalSlashes_agreeWithTheReference() public {
        _play(2, "total slashes");
    }

    function test_aSupplyOf96Bits_agreesWithTheReference() public {
        _play(3, "a supply of 96 bits");
    }

    function test_secondsApart_agreeWithTheReference() public {
        _play(4, "seconds apart");
    }

    function _play(uint256 index, string memory name) private {
        string memory json = vm.readFile("../../tests/vectors/staking_pools.json");
        string memory scenario = string.concat(".scenarios[", vm.toString(index), "].");
        vm.assertEq(vm.parseJsonString(json, string.concat(scenario, "name")), name);
        vm.assertEq(vm.parseJsonUint(json, ".actors"), ACTORS);
        _begin(json);
        string[] memory operations = vm.parseJsonStringArray(json, string.concat(scenario, "op"));
        _readColumns(json, scenario);
        for (uint256 i = 0; i < operations.length; ++i) {
            address node = _actor(_columns["node"][i]);
            vm.warp(_start + _columns["at"][i]);
            _perform(operations[i], node, _actor(_columns["actor"][i]), _columns["argument"][i], _columns["result"][i]);
            _compare(node, i);
        }
        vm.assertGt(operations.length, 30);
    }

    function _begin(string memory json) private {
        uint256 supply = vm.parseJsonUint(json, ".supply");
        uint256 unbonding = vm.parseJsonUint(json, ".unbonding");
        _deployAll(supply, uint32(unbonding), uint32(vm.parseJsonUint(json, ".vesting")));
        _beTasks();
        uint256[] memory commissions = vm.parseJsonUintArray(json, ".commissions");
        for (uint256 i = 0; i < ACTORS; ++i) {
            token.transfer(_actor(i), supply / (ACTORS + 1));
            vm.startPrank(_actor(i));
            token.approve(address(staking), type(uint256).max);
            if (i < commissions.length) staking.register(ROLE, commissions[i], 0);
            vm.stopPrank();
        }
        _start = block.timestamp;
    }

    function _readColumns(string memory json, string memory scenario) private {
        string[13] memory names = [
            "at",
            "node",
            "actor",
            "argument",
            "result",
            "balance",
            "assets",
            "shares",
            "unbonding_shares",
            "locked",
            "free",
            "commission",
            "unvested_x48"
        ];
        for (uint256 i = 0; i < names.length; ++i) {
            _columns[names[i]] = vm.parseJsonUintArray(json, string.concat(scenario, names[i]));
        }
        for (uint256 i = 0; i < ACTORS; ++i) {
            string memory name = _numbered("holding_", i);
            _columns[name] = vm.parseJsonUintArray(json, string.concat(scenario, name));
            name = _numbered("claimable_", i);
            _columns[name] = vm.parseJsonUintArray(json, string.concat(scenario, name));
        }
    }

    function _perform(string memory name, address node, address actor, uint256 argument, uint256 result) private {
        bytes32 operation = keccak256(bytes(name));
        if (operation == keccak256("lock")) return staking.lock(node, ROLE, argument);
        if (operation == keccak256("unlock")) return staking.unlock(node, ROLE, argument);
        if (operation == keccak256("slash")) return vm.assertEq(staking.slash(node, ROLE, argument), result);
        if (operation == keccak256("reward")) return _reward(node, argument);
        if (operation == keccak256("delegate")) return _delegateAs(actor, node, argument, result);
        vm.prank(operation == keccak256("set_commission") ? node : actor);
        if (operation == keccak256("set_commission")) return staking.setCommission(ROLE, argument);
        if (operation == keccak256("unbond")) return vm.assertEq(staking.startUnbonding(node, ROLE, argument), result);
        if (operation == keccak256("withdraw")) return vm.assertEq(staking.withdraw(argument), result);
        if (operation == keccak256("redelegate")) return vm.assertEq(staking.redelegate(argument, node, ROLE), result);
        vm.assertEq(name, "claim");
        vm.assertEq(staking.claim(node, ROLE), result);
    }

    function _delegateAs(address actor, address node, uint256 amount, uint256 minted) private {
        (uint256 before,,) = staking.positionOf(actor, node, ROLE);
        _delegate(actor, node, amount);
        (uint256 shares,,) = staking.positionOf(actor, node, ROLE);
        vm.assertEq(shares - before, minted);
    }

    function _compare(address node, uint256 i) private view {
        Pool memory pool = staking.poolOf(node, ROLE);
        vm.assertEq(pool.assets, _columns["assets"][i]);
        vm.assertEq(pool.shares, _columns["shares"][i]);
        vm.assertEq(pool.unbondingShares, _columns["unbonding_shares"][i]);
        vm.assertEq(pool.locked, _columns["locked"][i]);
        vm.assertEq(pool.commission, _columns["commission"][i]);
        vm.assertEq(pool.unvestedX48, _columns["unvested_x48"][i]);
        vm.assertEq(staking.stakeOf(node, ROLE).free, _columns["free"][i]);
        vm.assertEq(token.balanceOf(address(staking)), _columns["balance"][i]);
        for (uint256 actor = 0; actor < ACTORS; ++actor) {
            (uint256 shares,, uint256 claimable) = staking.positionOf(_actor(actor), node, ROLE);
            vm.assertEq(shares, _columns[_numbered("holding_", actor)][i]);
            vm.assertEq(claimable, _columns[_numbered("claimable_", actor)][i]);
        }
    }

    function _actor(uint256 i) private pure returns (address) {
        return address(uint160(0xAC001 + i));
    }

    function _numbered(string memory name, uint256 i) private pure returns (string memory) {
        return string.concat(name, vm.toString(i));
    }
}
