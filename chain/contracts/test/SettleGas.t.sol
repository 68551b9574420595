// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskSettlement} from "../src/interfaces/ITaskSettlement.sol";
import {Fixture} from "./utils/Fixture.sol";
import {GasMeter} from "./utils/GasMeter.sol";

/// @dev A round before it is settled, in `setUp`, so that settling finds storage as cold as a transaction does.
abstract contract SettleGasFixture is Fixture, GasMeter {
    bytes private _data;

    function setUp() public override {
        super.setUp();
        _toScoring();
        _judge();
        _pass();
        _data = abi.encodeCall(ITaskSettlement.settle, (id, 1));
    }

    function _judge() internal virtual;

    function _settleGas(string memory name) internal {
        bytes memory data = _data;
        _measure("gas", name, STRANGER, address(tasks), data);
    }
}

/// @notice The cost of settling with slashes. `SettlingPages` has the cost at the limits.
contract SettleSlashGasTest is SettleGasFixture {
    function _judge() internal override {
        _scoreAll(-1_000_000);
    }

    function test_settle_whereAllHospitalsAreSlashed() public {
        _settleGas("settle, four slashed, three paid");
    }
}

contract SettleSilentGasTest is SettleGasFixture {
    function _judge() internal override {
        for (uint256 i = 0; i < VOTERS; ++i) {
            _score(i, _scores(1));
        }
    }

    function test_settle_whereAllVotersAreSilent() public {
        _settleGas("settle, three silent");
    }
}
