// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice The stake behind one node in one role: its owner's and its delegators', in shares of one price. Four words.
/// @dev Widths: the token's supply fits 96 bits, so every amount does. `X48` marks fixed point with 48 fractional bits.
///      Always: locked <= assets <= shares and unbondingShares <= shares; assets are zero only if shares are.
struct Pool {
    uint96 assets; // what all shares, unbonding ones included, own together
    uint112 shares;
    uint16 commissionBps; // the owner's part of rewards, before they are shared out
    uint16 nextCommissionBps; // an announced raise
    // ---
    uint96 locked; // bonds of tasks, that all assets answer for
    uint112 unbondingShares; // answer for bonds still, but back no new ones and earn nothing
    uint40 nextCommissionAt; // when the raise takes effect; 0: none is announced
    // ---
    uint144 indexX48; // what one share that never unbonds has earned since the node was registered, and one
    uint96 commission; // vested and the owner's to claim, beside what its shares earn
    // ---
    uint144 unvestedX48; // rewards not yet anybody's
    uint40 vestedAt; // up to when rewards were shared out; 0: the node is not registered
    uint40 vestingEnd; // when all of `unvestedX48` has vested
    uint32 generation; // counts the times that a slash took everything; positions of earlier ones are worth nothing
}

/// @notice What one delegator has in one pool.
struct Position {
    uint112 shares; // not unbonding
    uint144 indexX48; // the pool's, up to which `earnedX48` counts
    // ---
    uint144 earnedX48; // not yet claimed
    uint32 generation; // of the pool, whose shares these are
}
