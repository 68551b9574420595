// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Test} from "./Vm.sol";

/// @dev Each stage is to be reached in `setUp`, so that a test's one call finds storage as cold as a transaction does.
abstract contract GasMeter is Test {
    /// @dev The gas of a transaction with this call alone: what it costs by itself, its data, and what it does; or the
    ///      least for its data (EIP-7623).
    function _measure(string memory group, string memory name, address sender, address target, bytes memory data)
        internal
        returns (uint256 used)
    {
        vm.assertGt(target.code.length, 0); // a transaction's target is warm
        vm.prank(sender);
        uint256 before = gasleft();
        (bool ok,) = target.call(data);
        used = before - gasleft();
        vm.assertTrue(ok);
        uint256 tokens;
        for (uint256 i = 0; i < data.length; ++i) {
            tokens += data[i] == 0 ? 1 : 4;
        }
        used = 21_000 + (used + 4 * tokens > 10 * tokens ? used + 4 * tokens : 10 * tokens);
        vm.snapshotValue(group, name, used);
    }
}
