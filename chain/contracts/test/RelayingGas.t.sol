// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskRounds} from "../src/interfaces/ITaskRounds.sol";
import {GasMeter} from "./utils/GasMeter.sol";
import {RelayFixture} from "./utils/RelayFixture.sol";

abstract contract RelayGasFixture is RelayFixture, GasMeter {
    uint256 internal constant TRANSACTION_LIMIT = 1 << 24; // EIP-7825
    uint256 internal constant DATA_LIMIT = 1 << 17; // nodes pass no larger transactions on

    bytes private _data;

    function _prepare(uint256 hospitals, uint256 blobs) internal {
        _toRelaying(hospitals + 1, blobs); // one commits later: what its phase's end costs is not the commitments'
        _data = abi.encodeCall(ITaskRounds.commitUpdates, (id, 0, _batch(hospitals)));
    }

    function _measure(string memory name) internal returns (uint256 used) {
        bytes memory data = _data;
        used = _measure("relaying", name, STRANGER, address(tasks), data);
        vm.assertLe(used, TRANSACTION_LIMIT);
        vm.assertLe(data.length, DATA_LIMIT - 1_000); // the rest of the transaction
    }
}

contract RelaySixteenGasTest is RelayGasFixture {
    function setUp() public override {
        super.setUp();
        _prepare(16, 1);
    }

    function test_commitUpdates_costsLessThan25kAHospital() public {
        vm.assertLe(_measure("commitUpdates, sixteen hospitals, one blob"), 16 * 25_000);
    }
}

contract RelayManyBlobsGasTest is RelayGasFixture {
    function setUp() public override {
        super.setUp();
        _prepare(4, 16);
    }

    function test_commitUpdates_costsLessThan10kABlobForFourTimesSixteen() public {
        vm.assertLe(_measure("commitUpdates, four hospitals, sixteen blobs"), 4 * 16 * 10_000);
    }
}

contract RelayManyHospitalsGasTest is RelayGasFixture {
    function setUp() public override {
        super.setUp();
        _prepare(220, 1);
    }

    function test_commitUpdates_costsLessThan17kEachForTwoHundredAndTwenty() public {
        vm.assertLe(_measure("commitUpdates, 220 hospitals, one blob"), 220 * 17_000);
    }
}

contract RelayMostHospitalsGasTest is RelayGasFixture {
    function setUp() public override {
        super.setUp();
        _prepare(255, 1);
    }

    /// @dev A task has one more at most.
    function test_commitUpdates_takesAllHospitalsInATransaction() public {
        vm.assertLe(_measure("commitUpdates, 255 hospitals, one blob"), 255 * 17_000);
    }
}

contract RelayMostBlobsGasTest is RelayGasFixture {
    function setUp() public override {
        super.setUp();
        _prepare(29, 128);
    }

    function test_commitUpdates_takesTwentyNineOfMostBlobsInATransaction() public {
        vm.assertLe(_measure("commitUpdates, 29 hospitals, 128 blobs"), 29 * 128 * 3_000);
    }
}
