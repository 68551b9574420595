// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IChannels} from "../src/interfaces/IChannels.sol";
import {IEnsembles} from "../src/interfaces/IEnsembles.sol";
import {IModelShares} from "../src/interfaces/IModelShares.sol";
import {IStaking} from "../src/interfaces/IStaking.sol";
import {GasMeter} from "./utils/GasMeter.sol";
import {ChannelsFixture} from "./utils/ChannelsFixture.sol";
import {EnsemblesFixture} from "./utils/EnsemblesFixture.sol";
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

contract ChannelsGasTest is ChannelsFixture, GasMeter {
    uint256 private constant BUYERS = 10;

    function setUp() public override {
        super.setUp();
        _playAndMint();
        for (uint256 i = 0; i < BUYERS; ++i) {
            _deposit(i, 1e18);
        }
        _redeem(0, 1);
    }

    function test_deposit() public {
        token.transfer(_buyer(0), 1e18);
        vm.prank(_buyer(0));
        token.approve(address(modelShares), 1e18);
        bytes memory data = abi.encodeCall(IChannels.deposit, (id, SERVER, 1e18));
        vm.assertLe(_measure("shares", "deposit, the next", _buyer(0), address(modelShares), data), 75_000);
    }

    function test_redeem_one() public {
        bytes memory data = abi.encodeCall(IChannels.redeem, (id, SERVER, _only(_voucher(0, 1e18))));
        vm.assertLe(_measure("shares", "redeem, one buyer", SERVER, address(modelShares), data), 110_000);
    }

    function test_redeem_ten() public {
        IChannels.Voucher[] memory vouchers = new IChannels.Voucher[](BUYERS);
        for (uint256 i = 0; i < BUYERS; ++i) {
            vouchers[i] = _voucher(i, 1e18);
        }
        bytes memory data = abi.encodeCall(IChannels.redeem, (id, SERVER, vouchers));
        vm.assertLe(_measure("shares", "redeem, ten buyers", SERVER, address(modelShares), data), 250_000);
    }
}

contract EnsemblesGasTest is EnsemblesFixture, GasMeter {
    uint256[] private _all;
    uint256[] private _two;

    function setUp() public override {
        super.setUp();
        _all = _members(16);
        _two = _pair(1, 2);
        modelShares.formEnsemble(_two);
        modelShares.formEnsemble(_all);
        for (id = FIRST; id <= FIRST + 1; ++id) {
            _deposit(0, 1e18);
            _redeem(0, 1e9);
        }
    }

    function test_formEnsemble_ofTwo() public {
        bytes memory data = abi.encodeCall(IEnsembles.formEnsemble, (_pair(1, 3)));
        vm.assertLe(_meter("formEnsemble, of two", STRANGER, data), 150_000);
    }

    function test_formEnsemble_ofSixteen() public {
        uint256[] memory list = new uint256[](16);
        for (uint256 i = 0; i < 16; ++i) {
            list[i] = i + 2;
        }
        _member(1_000);
        bytes memory data = abi.encodeCall(IEnsembles.formEnsemble, (list));
        vm.assertLe(_meter("formEnsemble, of sixteen", STRANGER, data), 300_000);
    }

    function test_redeem_ofAnEnsembleOfTwo() public {
        _measureRedeem(FIRST, "redeem, one buyer of an ensemble of two", 150_000);
    }

    function test_redeem_ofAnEnsembleOfSixteen() public {
        _measureRedeem(FIRST + 1, "redeem, one buyer of an ensemble of sixteen", 600_000);
    }

    function _measureRedeem(uint256 number, string memory name, uint256 atMost) private {
        id = number;
        bytes memory data = abi.encodeCall(IChannels.redeem, (id, SERVER, _only(_voucher(0, 1e18))));
        vm.assertLe(_meter(name, SERVER, data), atMost);
    }

    function _meter(string memory name, address sender, bytes memory data) private returns (uint256) {
        return _measure("shares", name, sender, address(modelShares), data);
    }
}
