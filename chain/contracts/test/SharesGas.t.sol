// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IModelShares} from "../src/interfaces/IModelShares.sol";
import {IStaking} from "../src/interfaces/IStaking.sol";
import {GasMeter} from "./utils/GasMeter.sol";
import {SharesFixture} from "./utils/SharesFixture.sol";

abstract contract SharesGasFixture is SharesFixture, GasMeter {
    function _measure(string memory name, address sender, bytes memory data) internal returns (uint256) {
        return _measure("shares", name, sender, address(modelShares), data);
    }
}

contract ShowTermsGasTest is SharesGasFixture {
    uint256 private constant LINES = 60;
    bytes private _head;

    function setUp() public override {
        super.setUp();
        for (uint256 i = 0; i < LINES; ++i) {
            _head = bytes.concat(_head, 'key = "a value of a task file, as it may be long"\n');
        }
        bytes memory file = _file("20", "10", "55", "15");
        bytes memory lines = new bytes(file.length - HEAD.length);
        for (uint256 i = 0; i < lines.length; ++i) {
            lines[i] = file[HEAD.length + i];
        }
        _start(bytes.concat(_head, lines));
    }

    function test_showTerms_ofAFileOf3kB() public {
        bytes memory data = abi.encodeCall(IModelShares.showTerms, (id, _head, _terms()));
        vm.assertLe(_measure("showTerms, a file of 3 kB", STRANGER, data), 250_000);
    }
}

contract MintGasTest is SharesGasFixture {
    function setUp() public override {
        super.setUp();
        _play(3_000, 1_000);
        modelShares.showTerms(id, HEAD, _terms());
    }

    function test_mint_ofTwoRoundsOfSevenNodes() public {
        bytes memory data = abi.encodeCall(IModelShares.mint, (id, 1_000));
        vm.assertLe(_measure("mint, two rounds, four hospitals, three voters", STRANGER, data), 1_500_000);
    }
}

contract SharesMoneyGasTest is SharesGasFixture {
    function setUp() public override {
        super.setUp();
        _playAndMint();
        _pay(1_000e18);
        token.transfer(modelShares.tillOf(id, STRANGER), 1e18);
        modelShares.split(id, STRANGER);
        token.transfer(modelShares.tillOf(id, STRANGER), 1e18);
        token.transfer(BUYER, 1_000e18);
        vm.prank(BUYER);
        token.approve(address(modelShares), 1_000e18);
    }

    function test_pay() public {
        vm.assertLe(_measure("pay", BUYER, abi.encodeCall(IModelShares.pay, (id, 1e18))), 75_000);
    }

    function test_claim() public {
        vm.assertLe(_measure("claim, the first", OPERATOR, abi.encodeCall(IModelShares.claim, (id))), 120_000);
    }

    function test_claimForPool() public {
        uint256[] memory list = new uint256[](1);
        list[0] = id;
        bytes memory data = abi.encodeCall(IModelShares.claimForPool, (list, _hospital(0), IStaking.Role.Hospital));
        vm.assertLe(_measure("claimForPool, one task, the first", STRANGER, data), 200_000);
    }

    function test_split() public {
        bytes memory data = abi.encodeCall(IModelShares.split, (id, STRANGER));
        vm.assertLe(_measure("split, a till's next", BUYER, data), 150_000);
    }

    function test_transfer() public {
        bytes memory data = abi.encodeCall(modelShares.safeTransferFrom, (OPERATOR, STRANGER, id, 1_000, ""));
        vm.assertLe(_measure("safeTransferFrom, to a new holder", OPERATOR, data), 150_000);
    }
}
