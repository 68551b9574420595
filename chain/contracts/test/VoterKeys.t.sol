// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../src/interfaces/IStaking.sol";
import {Fixture} from "./utils/Fixture.sol";
import {Signer} from "./utils/Crypto.sol";

contract VoterKeysTest is Fixture {
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

    function test_commitHeldOut_namesTheSender(address voter, bytes32 root) public {
        vm.expectEmit(address(staking));
        emit IStaking.HeldOutCommitted(voter, root);
        vm.prank(voter);
        staking.commitHeldOut(root);
    }
}
