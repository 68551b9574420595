// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskRegistry} from "../src/interfaces/ITaskRegistry.sol";
import {TaskRules} from "../src/libraries/TaskRules.sol";
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
        _data = abi.encodeCall(ITaskRegistry.settle, (id, 1));
    }

    function _judge() internal virtual;

    function _settleGas(string memory name) internal returns (uint256) {
        bytes memory data = _data;
        return _measure("gas", name, STRANGER, address(tasks), data);
    }
}

/// @notice What settling costs for each node at most: the figure by which `TaskRules` keeps every round settleable.
contract SettleSlashGasTest is SettleGasFixture {
    function _judge() internal override {
        _scoreAll(-1_000_000);
    }

    function test_settle_staysWithinItsBoundWhereAllHospitalsAreSlashed() public {
        uint256 used = _settleGas("settle, four slashed, three paid");
        vm.assertLe(used - 150_000, (HOSPITALS + VOTERS) * TaskRules.SETTLE_GAS_PER_NODE);
    }
}

contract SettleSilentGasTest is SettleGasFixture {
    function _judge() internal override {
        for (uint256 i = 0; i < VOTERS; ++i) {
            _score(i, _scores(1));
        }
    }

    function test_settle_staysWithinItsBoundWhereAllVotersAreSilent() public {
        uint256 used = _settleGas("settle, three silent");
        vm.assertLe(used - 150_000, VOTERS * TaskRules.SETTLE_GAS_PER_NODE);
    }
}
