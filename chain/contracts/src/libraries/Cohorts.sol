// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Bits} from "./Bits.sol";

/// @title Dealing hospitals into cohorts.
library Cohorts {
    using Bits for uint256;

    bytes32 private constant DOMAIN = keccak256("CONSILIUM-V1-COHORTS");

    /// @notice The seed of a dealing, from a beacon's value that may draw seats as well.
    function seed(bytes32 value) internal pure returns (bytes32) {
        return keccak256(abi.encode(DOMAIN, value));
    }

    /// @notice Shuffles the set by Fisher and Yates and deals it like cards: sizes differ by one at most.
    /// @dev In words for whoever recomputes it: list the indices in ascending order; for i from the last down to 1,
    ///      swap i with keccak256(seed, i) mod (i + 1); the card at place i goes to cohort i mod `count`.
    function deal(uint256 members, bytes32 seed_, uint256 count) internal pure returns (uint256[] memory cohorts) {
        uint256[] memory cards = new uint256[](members.count());
        uint256 place;
        for (uint256 index = 0; members >> index != 0; ++index) {
            if (members.has(index)) cards[place++] = index;
        }

        cohorts = new uint256[](count);
        for (uint256 i = place; i > 0;) {
            --i;
            uint256 chosen = uint256(keccak256(abi.encode(seed_, i))) % (i + 1);
            uint256 card = cards[chosen];
            cards[chosen] = cards[i];
            cohorts[i % count] = cohorts[i % count].with(card);
        }
    }
}
