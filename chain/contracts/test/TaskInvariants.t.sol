// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {TaskHandler} from "./utils/TaskHandler.sol";
import {Test} from "./utils/Vm.sol";

/// @notice Invariants after any sequence of calls by all roles, over whole tasks. Every task can be ended.
contract TaskInvariantsTest is Test {
    /// @dev forge reads this struct.
    struct FuzzSelector {
        address addr;
        bytes4[] selectors;
    }

    TaskHandler private _handler;

    function setUp() public {
        _handler = new TaskHandler();
        _handler.start();
    }

    function targetContracts() external view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(_handler);
    }

    function targetSelectors() external view returns (FuzzSelector[] memory targets) {
        targets = new FuzzSelector[](1);
        targets[0] = FuzzSelector(address(_handler), new bytes4[](9));
        targets[0].selectors[0] = TaskHandler.hospitalActs.selector;
        targets[0].selectors[1] = TaskHandler.aggregatorActs.selector;
        targets[0].selectors[2] = TaskHandler.voterActs.selector;
        targets[0].selectors[3] = TaskHandler.anyoneActs.selector;
        targets[0].selectors[4] = TaskHandler.deadlinePasses.selector;
        targets[0].selectors[6] = TaskHandler.everybodyActs.selector;
        targets[0].selectors[7] = TaskHandler.operatorActs.selector;
        targets[0].selectors[5] = TaskHandler.strangerClaims.selector;
        targets[0].selectors[8] = TaskHandler.strangerTries.selector;
    }

    /// @dev 9,600 calls; 102,400 in `make test-deep`.
    /// forge-config: default.invariant.runs = 48
    /// forge-config: deep.invariant.runs = 512
    /// forge-config: default.invariant.depth = 200
    /// forge-config: deep.invariant.depth = 200
    /// forge-config: default.invariant.fail-on-revert = true
    /// forge-config: deep.invariant.fail-on-revert = true
    function invariant_money() external view {
        _handler.checkConserved();
    }

    function afterInvariant() external {
        _handler.checkEnds();
    }
}
