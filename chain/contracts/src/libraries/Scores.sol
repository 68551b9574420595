// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Keys} from "../types/Task.sol";

/// @title Voters' revealed scores, four to a storage word.
library Scores {
    /// @notice In a ballot's first place: what is published, or who is named, cannot be read, or is not what it should be.
    int64 internal constant DOES_NOT_MATCH = type(int64).min + 1;

    uint256 private constant PER_WORD = 4;
    bytes32 private constant DOMAIN = keccak256("CONSILIUM-V1-SCORES");

    /// @notice What a voter commits to: scores bound to place and author, so that nobody can copy them.
    function commitment(uint256 taskId, uint256 round, address voter, int64[] calldata scores, bytes32 salt)
        internal
        view
        returns (bytes32)
    {
        return keccak256(abi.encode(DOMAIN, block.chainid, address(this), taskId, round, voter, scores, salt));
    }

    function save(mapping(bytes32 key => uint256) storage words, uint256 round, uint256 voter, int64[] calldata scores)
        internal
    {
        for (uint256 first = 0; first < scores.length; first += PER_WORD) {
            uint256 word;
            for (uint256 i = first; i < scores.length && i < first + PER_WORD; ++i) {
                word |= uint256(uint64(scores[i])) << (i - first) * 64;
            }
            words[Keys.entry(round, voter, first / PER_WORD)] = word;
        }
    }

    /// @notice All scores of a voter that revealed.
    /// @param size how many the ballots of this round hold.
    function ballot(mapping(bytes32 key => uint256) storage words, uint256 round, uint256 voter, uint256 size)
        internal
        view
        returns (int64[] memory scores)
    {
        scores = new int64[](size);
        for (uint256 first = 0; first < size; first += PER_WORD) {
            uint256 word = words[Keys.entry(round, voter, first / PER_WORD)];
            for (uint256 i = first; i < size && i < first + PER_WORD; ++i) {
                scores[i] = int64(uint64(word >> (i - first) * 64));
            }
        }
    }
}
