// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../src/interfaces/IStaking.sol";
import {ITaskRegistry} from "../src/interfaces/ITaskRegistry.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {TaskRules} from "../src/libraries/TaskRules.sol";
import {Fixture} from "./utils/Fixture.sol";

/// @notice An owner that tries to lock its delegators in: it locks its own stake, too, and never for long.
contract LockInTest is Fixture {
    address private constant OWNER = address(0xBAD);
    address private constant DELEGATOR = address(0xDE1);
    uint256 private constant DELEGATED = 1_000e18;

    function _node(uint256 own) private {
        token.transfer(OWNER, own);
        vm.startPrank(OWNER);
        token.approve(address(staking), own);
        staking.register(IStaking.Role.Hospital, 0, own);
        vm.stopPrank();
        token.transfer(DELEGATOR, DELEGATED);
        vm.startPrank(DELEGATOR);
        token.approve(address(staking), DELEGATED);
        staking.delegate(OWNER, IStaking.Role.Hospital, DELEGATED);
        vm.stopPrank();
    }

    /// @dev A task of the owner's own, which locks all that is delegated to it.
    function _trap(uint32 joinWindow) private {
        ITaskTypes.TaskParams memory params = _params();
        (params.pool, params.aggregator, params.aggregatorBond) = (0, OWNER, 1);
        params.hospitalBond = uint128(DELEGATED);
        params.joinWindow = joinWindow;
        vm.prank(OWNER);
        id = tasks.propose(params);
    }

    function _longestJoinWindow() private pure returns (uint32) {
        // Three rounds, each of commit, upload and a half, publish and a half twice, blame three times, score, reveal;
        // and a beacon that dies in the end.
        return uint32(TaskRules.MAX_DURATION - TaskRules.BEACON_WINDOW - 3 * (WINDOW * 21 / 2));
    }

    function test_propose_refusesWindowsOfMoreThanHalfAYear() public {
        ITaskTypes.TaskParams memory params = _params();
        params.joinWindow = type(uint32).max;
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.ParamsInvalid.selector, "duration"));
        tasks.propose(params);
        params = _params();
        params.rounds = type(uint16).max; // short windows, and many
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.ParamsInvalid.selector, "duration"));
        tasks.propose(params);
        _trap(_longestJoinWindow());
        params = tasks.params(id);
        ++params.joinWindow;
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.ParamsInvalid.selector, "duration"));
        tasks.propose(params);
    }

    function test_join_refusesAnOwnerWithoutItsPart() public {
        _node(DELEGATED / 10 - 1);
        _trap(uint32(WINDOW));
        bytes memory key = _transportKey(OWNER);
        bytes memory proof = _transportProof(OWNER, OWNER);
        vm.expectRevert(
            abi.encodeWithSelector(
                IStaking.OwnStakeInsufficient.selector,
                OWNER,
                IStaking.Role.Hospital,
                DELEGATED / 10 - 1,
                DELEGATED / 10
            )
        );
        vm.prank(OWNER);
        tasks.joinAsHospital(id, 1, key, proof, keccak256("encryption key"));
    }

    function test_withdraw_keepsTheOwnersPart() public {
        _node(DELEGATED / 5);
        _trap(uint32(UNBONDING + 2 * WINDOW));
        _joinAs(OWNER, 1);
        vm.startPrank(OWNER);
        uint256 half = staking.startUnbonding(OWNER, IStaking.Role.Hospital, DELEGATED / 10);
        uint256 rest = staking.startUnbonding(OWNER, IStaking.Role.Hospital, DELEGATED / 10);
        vm.warp(block.timestamp + UNBONDING);
        bytes memory refusal = abi.encodeWithSelector(
            IStaking.OwnStakeInsufficient.selector, OWNER, IStaking.Role.Hospital, 0, DELEGATED / 10
        );
        vm.assertEq(staking.withdraw(half), DELEGATED / 10);
        vm.expectRevert(refusal);
        staking.withdraw(rest);
        vm.expectRevert(refusal);
        staking.redelegate(rest, OWNER, IStaking.Role.Hospital);
        vm.stopPrank();
        _pass();
        tasks.tick(id);
        tasks.releaseBond(id, OWNER);
        vm.startPrank(OWNER);
        vm.assertEq(staking.withdraw(rest), DELEGATED / 10);
        vm.stopPrank();
    }

    /// @dev The longest case, with an owner that never acts.
    function test_delegator_isOutWithinHalfAYear() public {
        _node(DELEGATED / 10);
        _trap(_longestJoinWindow());
        _joinAs(OWNER, 1);
        vm.startPrank(DELEGATOR);
        uint256 request = staking.startUnbonding(OWNER, IStaking.Role.Hospital, DELEGATED);
        vm.warp(block.timestamp + TaskRules.MAX_DURATION);
        tasks.tick(id);
        tasks.releaseBond(id, OWNER);
        vm.assertEq(staking.withdraw(request), DELEGATED);
        vm.stopPrank();
    }

    function test_propose_refusedAtTheRegistrysOwnAddress() public {
        (, bytes memory raw) = address(tasks).call(abi.encodeWithSignature("registry()"));
        address registry = abi.decode(raw, (address));
        vm.startPrank(OPERATOR);
        token.approve(registry, type(uint256).max);
        vm.expectRevert(ITaskTypes.OnlyDelegated.selector);
        ITaskRegistry(registry).propose(_params());
        vm.stopPrank();
        vm.assertEq(token.balanceOf(registry), 0);
    }
}
