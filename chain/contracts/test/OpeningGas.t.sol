// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskSettlement} from "../src/interfaces/ITaskSettlement.sol";
import {ITaskRounds} from "../src/interfaces/ITaskRounds.sol";
import {CanaryFixture} from "./utils/CanaryFixture.sol";
import {GasMeter} from "./utils/GasMeter.sol";

/// @dev Calls are prepared in `setUp`, so that they find storage as cold as a transaction does.
abstract contract OpeningGasFixture is CanaryFixture, GasMeter {
    bytes internal _data;

    function _measureCall(string memory name, address sender) internal returns (uint256) {
        bytes memory data = _data;
        return _measure("gas", name, sender, address(tasks), data);
    }

    function _prepareOpening(uint256 flipped) internal {
        _toCanaryScoring(flipped);
        _judge(_honest());
        tasks.settle(id, 1);
        _data = abi.encodeCall(ITaskSettlement.openCanaries, (id, 1, 0, 0, _seed, _retreat(1), _one(_opened(0, 0))));
    }
}

contract OpenPlainGasTest is OpeningGasFixture {
    function setUp() public override {
        super.setUp();
        _prepareOpening(0);
    }

    function test_openCanaries_costsLessThan140kForTwoHospitals() public {
        vm.assertLe(_measureCall("openCanaries, one blob of two hospitals", AGGREGATOR), 140_000);
    }
}

contract OpenFlippedGasTest is OpeningGasFixture {
    function setUp() public override {
        super.setUp();
        _prepareOpening(3);
    }

    function test_openCanaries_costsLessThan170kWhereItIsFlipped() public {
        vm.assertLe(_measureCall("openCanaries, one blob of two hospitals, turned", AGGREGATOR), 170_000);
    }
}

contract PublishCanariesGasTest is OpeningGasFixture {
    bytes32 private _hash;

    function setUp() public override {
        super.setUp();
        _toCanaryPublishing(_canaryParams());
        _setCanaries();
        _publish(0, 0, _publishedHash(0, 0, _isFlipped(0)));
        _hash = _publishedHash(1, 0, _isFlipped(1));
        _data = abi.encodeCall(ITaskRounds.publish, (id, 1, 1, 0, 0, 1));
    }

    /// @dev Two words are written that were zero; without canaries `sumCommitments` does that.
    function test_publish_costsLessThan100kWithCanaries() public {
        _setBlob(_hash);
        vm.assertLe(_measureCall("publish with canaries, last cohort, one blob", AGGREGATOR), 100_000);
    }
}

contract SettleCanariesGasTest is OpeningGasFixture {
    function setUp() public override {
        super.setUp();
        _toCanaryScoring(1);
        _judge(_honest());
        tasks.settle(id, 1);
        _openAll();
        _data = abi.encodeCall(ITaskSettlement.settle, (id, 1));
    }

    function test_settle_costsLessThan460kWithCanaries() public {
        vm.assertLe(_measureCall("settle with canaries, four hospitals, three voters", STRANGER), 460_000);
    }
}
