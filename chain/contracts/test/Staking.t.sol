// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../src/interfaces/IStaking.sol";
import {Fixture} from "./utils/Fixture.sol";
import {Signer} from "./utils/Crypto.sol";

contract StakingTest is Fixture {
    IStaking.Role private constant ROLE = IStaking.Role.Hospital;
    address private constant NODE = address(0x10001);

    function test_stake_refusesZero() public {
        vm.expectRevert(IStaking.AmountIsZero.selector);
        staking.stake(ROLE, 0);
    }

    function test_stake_keepsRolesApart() public view {
        vm.assertEq(staking.stakeOf(NODE, ROLE).free, STAKE);
        vm.assertEq(staking.stakeOf(NODE, IStaking.Role.Voter).free, 0);
    }

    function test_withdraw_paysAfterUnbonding(uint128 amount) public {
        amount = uint128(_bound(amount, 1, STAKE));
        vm.startPrank(NODE);
        staking.startUnbonding(ROLE, amount);
        uint64 due = uint64(block.timestamp) + UNBONDING;
        vm.warp(due - 1);
        vm.expectRevert(abi.encodeWithSelector(IStaking.StillUnbonding.selector, due));
        staking.withdraw(ROLE);
        vm.warp(due);
        staking.withdraw(ROLE);
        vm.expectRevert(abi.encodeWithSelector(IStaking.NothingToWithdraw.selector, NODE, ROLE));
        staking.withdraw(ROLE);
        vm.stopPrank();
        vm.assertEq(token.balanceOf(NODE), amount);
        _assertConserved();
    }

    function test_startUnbonding_refusals() public {
        vm.startPrank(NODE);
        vm.expectRevert(IStaking.AmountIsZero.selector);
        staking.startUnbonding(ROLE, 0);
        vm.expectRevert(abi.encodeWithSelector(IStaking.StakeInsufficient.selector, NODE, ROLE, STAKE, STAKE + 1));
        staking.startUnbonding(ROLE, STAKE + 1);
        // An amount that would be small if it were cut to 128 bits.
        uint256 wide = 1 << 128;
        vm.expectRevert(abi.encodeWithSelector(IStaking.StakeInsufficient.selector, NODE, ROLE, STAKE, wide));
        staking.startUnbonding(ROLE, wide);
        staking.startUnbonding(ROLE, 1);
        uint64 due = uint64(block.timestamp) + UNBONDING;
        vm.expectRevert(abi.encodeWithSelector(IStaking.UnbondingInProgress.selector, 1, due));
        staking.startUnbonding(ROLE, 1);
        vm.stopPrank();
    }

    function test_startUnbonding_cannotTouchLockedStake() public {
        _toStatistics();
        vm.prank(NODE);
        vm.expectRevert(abi.encodeWithSelector(IStaking.StakeInsufficient.selector, NODE, ROLE, 900e18, 901e18));
        staking.startUnbonding(ROLE, 901e18);
    }

    function test_lockUnlockSlash_onlyTasks() public {
        bytes memory refusal = abi.encodeWithSelector(IStaking.OnlyTasks.selector, STRANGER);
        vm.startPrank(STRANGER);
        vm.expectRevert(refusal);
        staking.lock(NODE, ROLE, 1);
        vm.expectRevert(refusal);
        staking.unlock(NODE, ROLE, 1);
        vm.expectRevert(refusal);
        staking.slash(NODE, ROLE, 1);
        vm.stopPrank();
    }

    function test_slash_burnsLockedStakeAlone(uint128 locked, uint128 amount) public {
        locked = uint128(_bound(locked, 1, STAKE));
        vm.startPrank(address(tasks));
        staking.lock(NODE, ROLE, locked);
        uint256 burnt = staking.slash(NODE, ROLE, amount);
        vm.stopPrank();
        vm.assertEq(burnt, amount < locked ? amount : locked);
        vm.assertEq(staking.stakeOf(NODE, ROLE).free, STAKE - locked);
        vm.assertEq(token.totalSupply(), SUPPLY - burnt);
        _assertConserved();
    }

    function test_setTasks_onceByDeployer() public {
        vm.expectRevert(abi.encodeWithSelector(IStaking.TasksAlreadySet.selector, address(tasks)));
        staking.setTasks(STRANGER);
        vm.prank(STRANGER);
        vm.expectRevert(abi.encodeWithSelector(IStaking.OnlyDeployer.selector, STRANGER));
        staking.setTasks(STRANGER);
    }

    function test_registerVoterKey_acceptsPyEccProof() public {
        string memory json = vm.readFile("../../tests/vectors/protocol.json");
        bytes memory key = vm.parseJsonBytes(json, ".signatures.public_key");
        vm.assertEq(vm.parseJsonAddress(json, ".signatures.voter"), _voter(0));
        vm.expectEmit(address(staking));
        emit IStaking.VoterKeyRegistered(_voter(0), key);
        vm.prank(_voter(0));
        staking.registerVoterKey(key, vm.parseJsonBytes(json, ".signatures.proof_of_possession"));
        vm.assertEq(staking.voterKeyHash(_voter(0)), keccak256(key));
    }

    function test_registerVoterKey_refusesCopiedProof() public {
        bytes memory key = Signer.publicKey(_secret(0));
        bytes memory proof = _possession(_voter(0), _secret(0), key);
        vm.expectRevert(abi.encodeWithSelector(IStaking.ProofOfPossessionInvalid.selector, STRANGER));
        vm.prank(STRANGER);
        staking.registerVoterKey(key, proof);
    }

    function test_registerVoterKey_refusesIdentityKey() public {
        vm.expectRevert(abi.encodeWithSelector(IStaking.ProofOfPossessionInvalid.selector, STRANGER));
        vm.prank(STRANGER);
        staking.registerVoterKey(new bytes(256), new bytes(128));
    }

    function test_registerVoterKey_refusesKeyOutsideSubgroup() public {
        string memory json = vm.readFile("../../tests/vectors/protocol.json");
        bytes memory proof = vm.parseJsonBytes(json, ".signatures.proof_of_possession");
        vm.expectRevert(abi.encodeWithSelector(IStaking.ProofOfPossessionInvalid.selector, _voter(0)));
        vm.prank(_voter(0));
        staking.registerVoterKey(vm.parseJsonBytes(json, ".outside_g2"), proof);
    }

    function test_registerVoterKey_refusesWrongLength() public {
        vm.expectRevert(abi.encodeWithSelector(IStaking.VoterKeyMalformed.selector, 255));
        staking.registerVoterKey(new bytes(255), new bytes(128));
    }
}
