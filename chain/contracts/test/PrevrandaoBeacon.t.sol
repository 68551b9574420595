// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IBeacon} from "../src/interfaces/IBeacon.sol";
import {Fixture} from "./utils/Fixture.sol";

contract PrevrandaoBeaconTest is Fixture {
    uint256 private constant BLOCK = 1_002;

    function test_request_isLookaheadBlocksAhead() public view {
        vm.assertEq(beacon.request(), block.number + LOOKAHEAD);
    }

    function test_seed_isFunctionOfTheBlockAlone() public {
        bytes memory header = _header(BLOCK);
        vm.roll(BLOCK + 1);
        vm.setBlockhash(BLOCK, keccak256(header));
        vm.assertEq(beacon.seed(BLOCK, header), _seedOf(BLOCK));
        vm.roll(BLOCK + 200);
        vm.setBlockhash(BLOCK, keccak256(header));
        vm.assertEq(beacon.seed(BLOCK, header), _seedOf(BLOCK));
    }

    function test_seed_refusedBeforeTheBlockIsPast() public {
        vm.roll(BLOCK);
        vm.expectRevert(abi.encodeWithSelector(IBeacon.SeedNotReady.selector, BLOCK));
        beacon.seed(BLOCK, _header(BLOCK));
    }

    function test_seed_refusesAnotherBlocksHeader() public {
        vm.roll(BLOCK + 2);
        vm.setBlockhash(BLOCK, keccak256(_header(BLOCK)));
        vm.setBlockhash(BLOCK + 1, keccak256(_header(BLOCK + 1)));
        vm.expectRevert(abi.encodeWithSelector(IBeacon.SeedProofInvalid.selector, BLOCK));
        beacon.seed(BLOCK, _header(BLOCK + 1));
    }

    function test_seed_refusesGarbage() public {
        vm.roll(BLOCK + 1);
        vm.setBlockhash(BLOCK, keccak256(_header(BLOCK)));
        vm.expectRevert(abi.encodeWithSelector(IBeacon.SeedProofInvalid.selector, BLOCK));
        beacon.seed(BLOCK, "");
    }

    function test_seed_expiresBeyondTheReachableWindow() public {
        vm.assertFalse(beacon.expired(BLOCK));
        vm.roll(BLOCK + 1);
        vm.setBlockhash(BLOCK, keccak256(_header(BLOCK)));
        vm.assertFalse(beacon.expired(BLOCK));
        vm.roll(BLOCK + 8_300);
        vm.assertTrue(beacon.expired(BLOCK));
        vm.expectRevert(abi.encodeWithSelector(IBeacon.SeedExpired.selector, BLOCK));
        beacon.seed(BLOCK, _header(BLOCK));
    }
}
