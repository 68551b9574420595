// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {BlockHeader} from "@openzeppelin/contracts/utils/BlockHeader.sol";
import {Blockhash} from "@openzeppelin/contracts/utils/Blockhash.sol";
import {IBeacon} from "./interfaces/IBeacon.sol";

/// @title Randomness from the consensus layer: the `prevrandao` of one fixed, later block.
/// @notice A request is a block's number. Its proof is that block's RLP header. The value is that of one fixed block,
///         so no caller can grind it by choosing when to deliver the proof. Only the proposer of exactly that block has
///         influence: it may withhold the block, and so refuse one value.
/// @dev Block hashes reach back 8191 blocks with EIP-2935 and 256 without.
contract PrevrandaoBeacon is IBeacon {
    uint256 public immutable lookahead;

    /// @param lookahead_ blocks between a request and its value. Nobody may know the proposers' reveals up to that
    ///        block when the request is made.
    constructor(uint256 lookahead_) {
        lookahead = lookahead_;
    }

    function request() external view returns (uint256) {
        return block.number + lookahead;
    }

    function seed(uint256 request_, bytes calldata proof) external view returns (bytes32) {
        if (block.number <= request_) revert SeedNotReady(request_);
        bytes32 blockHash = Blockhash.blockHash(request_);
        if (blockHash == 0) revert SeedExpired(request_);
        // This hash belongs to the block with this number, so the header has this number, too.
        if (keccak256(proof) != blockHash) revert SeedProofInvalid(request_);
        return keccak256(abi.encode(BlockHeader.getPrevRandao(proof), request_));
    }

    function expired(uint256 request_) external view returns (bool) {
        return block.number > request_ && Blockhash.blockHash(request_) == 0;
    }
}
