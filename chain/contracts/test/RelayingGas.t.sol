// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskRounds} from "../src/interfaces/ITaskRounds.sol";
import {GasMeter} from "./utils/GasMeter.sol";
import {RelayFixture} from "./utils/RelayFixture.sol";

abstract contract RelayGasFixture is RelayFixture, GasMeter {
    uint256 internal constant TRANSACTION_LIMIT = 1 << 24; // EIP-7825

    bytes private _data;

    function _prepare(uint256 hospitals, uint256 blobs) internal {
        _toRelaying(hospitals + 1, blobs); // one commits later: what its phase's end costs is not the commitments'
        _data = abi.encodeCall(ITaskRounds.commitUpdates, (id, 0, _batch(hospitals)));
    }

    function _measure(string memory name) internal returns (uint256) {
        bytes memory data = _data;
        return _measure("relaying", name, STRANGER, address(tasks), data);
    }
}

contract RelaySixteenGasTest is RelayGasFixture {
    function setUp() public override {
        super.setUp();
        _prepare(16, 1);
    }

    function test_commitUpdates_costsLessThan85kAHospital() public {
        vm.assertLe(_measure("commitUpdates, sixteen hospitals, one blob"), 16 * 85_000);
    }
}

contract RelayManyBlobsGasTest is RelayGasFixture {
    function setUp() public override {
        super.setUp();
        _prepare(4, 16);
    }

    function test_commitUpdates_costsLessThan40kABlobForFourTimesSixteen() public {
        vm.assertLe(_measure("commitUpdates, four hospitals, sixteen blobs"), 4 * 16 * 40_000);
    }
}

contract RelayMostHospitalsGasTest is RelayGasFixture {
    function setUp() public override {
        super.setUp();
        _prepare(220, 1);
    }

    function test_commitUpdates_takesTwoHundredAndTwentyInATransaction() public {
        vm.assertLe(_measure("commitUpdates, 220 hospitals, one blob"), TRANSACTION_LIMIT);
    }
}

contract RelayMostBlobsGasTest is RelayGasFixture {
    function setUp() public override {
        super.setUp();
        _prepare(3, 128);
    }

    function test_commitUpdates_takesThreeOfMostBlobsInATransaction() public {
        vm.assertLe(_measure("commitUpdates, three hospitals, 128 blobs"), TRANSACTION_LIMIT);
    }
}
