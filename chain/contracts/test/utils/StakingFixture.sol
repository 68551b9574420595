// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IStaking} from "../../src/interfaces/IStaking.sol";
import {Pool} from "../../src/types/Pool.sol";
import {IDeployedStaking} from "./Deployed.sol";
import {Test} from "./Vm.sol";

/// @notice Staking by itself: the test stands for the task contract, and one node is registered without stake.
abstract contract StakingFixture is Test {
    IStaking.Role internal constant ROLE = IStaking.Role.Hospital;
    uint32 internal constant UNBONDING = 7 days;
    uint32 internal constant VESTING = 1 days;
    uint256 internal constant COMMISSION = 1_000;
    uint256 internal constant SUPPLY = 1_000_000e18;
    uint256 internal constant FUNDS = 10_000e18;

    address internal constant OWNER = address(0xA0001);
    address internal constant ALICE = address(0xB0001);
    address internal constant BOB = address(0xB0002);
    address internal constant EVE = address(0xE0001);

    IERC20 internal token;
    IDeployedStaking internal staking;

    function setUp() public virtual {
        vm.warp(1_000_000);
        _deployAll(SUPPLY, UNBONDING, VESTING);
        _beTasks();
        _fund(OWNER);
        _fund(ALICE);
        _fund(BOB);
        _fund(EVE);
        vm.prank(OWNER);
        staking.register(ROLE, COMMISSION, 0);
    }

    function _deployAll(uint256 supply, uint32 unbonding, uint32 vesting) internal {
        token = IERC20(_deploy("ConsiliumToken", abi.encode(supply, address(this))));
        staking = IDeployedStaking(_deploy("Staking", abi.encode(token, unbonding, vesting)));
    }

    function _beTasks() internal {
        staking.connect(address(this), address(this));
        token.approve(address(staking), type(uint256).max);
    }

    function _deploy(string memory name, bytes memory arguments) internal returns (address) {
        return vm.deployCode(_artifact(name), arguments);
    }

    function _fund(address account) internal {
        token.transfer(account, FUNDS);
        vm.prank(account);
        token.approve(address(staking), type(uint256).max);
    }

    function _delegate(address delegator, uint256 amount) internal {
        _delegate(delegator, OWNER, amount);
    }

    function _delegate(address delegator, address node, uint256 amount) internal {
        vm.prank(delegator);
        staking.delegate(node, ROLE, amount);
    }

    function _unbond(address delegator, uint256 shares) internal returns (uint256 request) {
        vm.prank(delegator);
        request = staking.startUnbonding(OWNER, ROLE, shares);
    }

    function _unbondAll(address delegator) internal returns (uint256 request) {
        (uint256 shares,) = _position(delegator);
        request = _unbond(delegator, shares);
    }

    function _withdraw(address delegator, uint256 request) internal returns (uint256 amount) {
        vm.prank(delegator);
        amount = staking.withdraw(request);
    }

    function _claim(address delegator) internal returns (uint256 amount) {
        vm.prank(delegator);
        amount = staking.claim(OWNER, ROLE);
    }

    function _lock(uint256 amount) internal {
        staking.lock(OWNER, ROLE, amount);
    }

    function _slash(uint256 amount) internal returns (uint256 burnt) {
        burnt = staking.slash(OWNER, ROLE, amount);
    }

    function _reward(uint256 amount) internal {
        _reward(OWNER, amount);
    }

    function _reward(address node, uint256 amount) internal {
        IStaking.Reward[] memory rewards = new IStaking.Reward[](1);
        rewards[0] = IStaking.Reward(node, ROLE, uint96(amount));
        staking.reward(rewards);
    }

    function _wait(uint256 time) internal {
        vm.warp(block.timestamp + time);
    }

    function _pool() internal view returns (Pool memory) {
        return staking.poolOf(OWNER, ROLE);
    }

    function _position(address delegator) internal view returns (uint256 shares, uint256 amount) {
        (shares, amount,) = staking.positionOf(delegator, OWNER, ROLE);
    }

    function _worth(address delegator) internal view returns (uint256 amount) {
        (, amount,) = staking.positionOf(delegator, OWNER, ROLE);
    }

    function _claimable(address delegator) internal view returns (uint256 amount) {
        (,, amount) = staking.positionOf(delegator, OWNER, ROLE);
    }

    function _requestWorth(address delegator, uint256 request) internal view returns (uint256 amount) {
        (, amount) = staking.requestOf(delegator, request);
    }

    /// @dev Exact: stake, and what else the test says was put in and not taken out.
    function _assertConserved(uint256 besideStake) internal view {
        vm.assertEq(token.balanceOf(address(staking)), staking.totalStaked() + besideStake);
    }
}
