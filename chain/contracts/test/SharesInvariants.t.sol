// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {SharesHandler} from "./utils/SharesHandler.sol";
import {Test} from "./utils/Vm.sol";

/// @notice Invariants of parts and their money after any sequence of calls by anybody.
contract SharesInvariantsTest is Test {
    /// @dev forge reads this struct.
    struct FuzzSelector {
        address addr;
        bytes4[] selectors;
    }

    SharesHandler private _handler;

    function setUp() public {
        _handler = new SharesHandler();
        _handler.start();
    }

    function targetContracts() external view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(_handler);
    }

    function targetSelectors() external view returns (FuzzSelector[] memory targets) {
        targets = new FuzzSelector[](1);
        targets[0] = FuzzSelector(address(_handler), new bytes4[](11));
        targets[0].selectors[0] = SharesHandler.pays.selector;
        targets[0].selectors[1] = SharesHandler.claims.selector;
        targets[0].selectors[2] = SharesHandler.claimsForPool.selector;
        targets[0].selectors[3] = SharesHandler.transfers.selector;
        targets[0].selectors[4] = SharesHandler.donates.selector;
        targets[0].selectors[5] = SharesHandler.waits.selector;
        targets[0].selectors[6] = SharesHandler.strangerTries.selector;
        targets[0].selectors[7] = SharesHandler.buys.selector;
        targets[0].selectors[8] = SharesHandler.deposits.selector;
        targets[0].selectors[9] = SharesHandler.redeems.selector;
        targets[0].selectors[10] = SharesHandler.closes.selector;
    }

    /// @dev 102,400 calls, and a look at the books after every tenth and the last.
    /// forge-config: default.invariant.runs = 512
    /// forge-config: default.invariant.depth = 200
    /// forge-config: default.invariant.fail-on-revert = true
    /// forge-config: default.invariant.check-interval = 10
    /// forge-config: deep.invariant.runs = 1024
    /// forge-config: deep.invariant.depth = 200
    /// forge-config: deep.invariant.fail-on-revert = true
    /// forge-config: deep.invariant.check-interval = 10
    function invariant_money() external view {
        _handler.check();
    }

    function afterInvariant() external {
        _handler.checkEnds();
    }
}
