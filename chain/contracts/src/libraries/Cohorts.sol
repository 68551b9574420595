// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Bits} from "./Bits.sol";

/// @title The assignment of hospitals to cohorts.
library Cohorts {
    using Bits for uint256;

    bytes32 private constant DOMAIN = keccak256("CONSILIUM-V1-COHORTS");

    /// @notice The seed of an assignment, from a beacon's value that may draw seats as well.
    function seed(bytes32 value) internal pure returns (bytes32) {
        return keccak256(abi.encode(DOMAIN, value));
    }

    /// @notice Shuffles the set (Fisher and Yates) and assigns it to the cohorts in turn. Sizes differ by one at most.
    /// @dev To recompute it: list the members in ascending order. For i from the last position down to 1, swap position
    ///      i with position keccak256(seed, i) mod (i + 1). The member at position i goes to cohort i mod `count`.
    function assign(uint256 members, bytes32 seed_, uint256 count) internal pure returns (uint256[] memory cohorts) {
        uint256[] memory order = new uint256[](members.count());
        uint256 length;
        for (uint256 index = 0; members >> index != 0; ++index) {
            if (members.has(index)) order[length++] = index;
        }

        cohorts = new uint256[](count);
        for (uint256 i = length; i > 0;) {
            --i;
            uint256 chosen = uint256(keccak256(abi.encode(seed_, i))) % (i + 1);
            uint256 member = order[chosen];
            order[chosen] = order[i];
            cohorts[i % count] = cohorts[i % count].with(member);
        }
    }
}
