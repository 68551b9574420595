// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskSettlement} from "../src/interfaces/ITaskSettlement.sol";
import {ITaskRounds} from "../src/interfaces/ITaskRounds.sol";
import {DecoyFixture} from "./utils/DecoyFixture.sol";
import {GasMeter} from "./utils/GasMeter.sol";

/// @dev Calls are prepared in `setUp`, so that they find storage as cold as a transaction does.
abstract contract DisclosingGasFixture is DecoyFixture, GasMeter {
    bytes internal _data;

    function _measureCall(string memory name, address sender) internal returns (uint256) {
        bytes memory data = _data;
        return _measure("gas", name, sender, address(tasks), data);
    }

    function _prepareDisclosure(uint256 flipped) internal {
        _toDecoyScoring(flipped);
        _judge(_honest());
        tasks.settle(id, 1);
        _data = abi.encodeCall(
            ITaskSettlement.discloseDecoys, (id, 1, 0, 0, _seed, _negatedDelta(1), _one(_disclosed(0, 0)))
        );
    }
}

contract OpenPlainGasTest is DisclosingGasFixture {
    function setUp() public override {
        super.setUp();
        _prepareDisclosure(0);
    }

    function test_discloseDecoys_costsLessThan150kForTwoHospitals() public {
        vm.assertLe(_measureCall("discloseDecoys, one blob of two hospitals", AGGREGATOR), 150_000);
    }
}

contract DiscloseFlippedGasTest is DisclosingGasFixture {
    function setUp() public override {
        super.setUp();
        _prepareDisclosure(3);
    }

    function test_discloseDecoys_costsLessThan180kWhereItIsFlipped() public {
        vm.assertLe(_measureCall("discloseDecoys, one blob of two hospitals, sign-flipped", AGGREGATOR), 180_000);
    }
}

contract PublishDecoysGasTest is DisclosingGasFixture {
    bytes32 private _hash;

    function setUp() public override {
        super.setUp();
        _toDecoyPublishing(_decoyParams());
        _setDecoys();
        _publish(0, 0, _publishedHash(0, 0, _isFlipped(0)));
        _hash = _publishedHash(1, 0, _isFlipped(1));
        _data = abi.encodeCall(ITaskRounds.publish, (id, 1, 1, 0, 0, 1));
    }

    /// @dev Two words are written that were zero; without decoys `sumCommitments` does that.
    function test_publish_costsLessThan100kWithDecoys() public {
        _setBlob(_hash);
        vm.assertLe(_measureCall("publish with decoys, last cohort, one blob", AGGREGATOR), 100_000);
    }
}

contract SettleDecoysGasTest is DisclosingGasFixture {
    function setUp() public override {
        super.setUp();
        _toDecoyScoring(1);
        _judge(_honest());
        tasks.settle(id, 1);
        _openAll();
        _data = abi.encodeCall(ITaskSettlement.settle, (id, 1));
    }

    function test_settle_costsLessThan460kWithDecoys() public {
        vm.assertLe(_measureCall("settle with decoys, four hospitals, three voters", STRANGER), 460_000);
    }
}
