// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Keys} from "../types/Task.sol";

/// @title Voters' revealed scores, four in a storage word.
library Scores {
    /// @notice The first score of a ballot that says: published data or named cheaters are wrong, or cannot be read.
    int64 internal constant DOES_NOT_MATCH = type(int64).min + 1;

    uint256 private constant PER_WORD = 4;
    bytes32 private constant DOMAIN = keccak256("CONSILIUM-V1-SCORES");

    /// @notice A voter's commitment. It binds scores to chain, contract, round and voter, so that nobody can copy it.
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

    /// @notice One score of a voter that has revealed.
    function scoreAt(mapping(bytes32 key => uint256) storage words, uint256 round, uint256 voter, uint256 index)
        internal
        view
        returns (int64)
    {
        return int64(uint64(words[Keys.entry(round, voter, index / PER_WORD)] >> (index % PER_WORD) * 64));
    }
}
