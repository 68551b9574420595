// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Test} from "./utils/Vm.sol";

/// @notice Room that deployed code leaves below a chain's limit (EIP-170), so that a change does not meet it unawares.
contract SizesTest is Test {
    uint256 private constant LARGEST = 24_576;
    uint256 private constant SPARE = 2_000;

    function test_contracts_leaveRoomInTheirCode() public {
        string[9] memory names = [
            "ConsiliumToken",
            "DrandBeacon",
            "ModelShares",
            "PrevrandaoBeacon",
            "SponsoredAccount",
            "Staking",
            "TaskRegistry",
            "TaskSettlement",
            "Tasks"
        ];
        for (uint256 i = 0; i < names.length; ++i) {
            uint256 free = LARGEST - vm.getDeployedCode(_artifact(names[i])).length;
            vm.snapshotValue("sizes", string.concat(names[i], ", bytes free"), free);
            vm.assertLe(SPARE, free);
        }
    }
}
