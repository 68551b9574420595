// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice The stake behind a node in a role, of its owner and its delegators, in shares of one price. Four words.
/// @dev Widths: the token's supply fits 96 bits, so every amount does. `X48` marks fixed point with 48 fractional bits.
///      Always: locked <= assets <= shares and unbondingShares <= shares; assets are zero only if shares are.
struct Pool {
    uint96 assets; // worth of all shares together, unbonding ones included
    uint112 shares;
    uint16 commissionBps; // the owner's part of rewards, before the shares get theirs
    uint16 nextCommissionBps; // an announced raise
    // ---
    uint96 locked; // bonds of tasks, for which all assets answer
    uint112 unbondingShares; // still answer for bonds, but back no new ones and earn nothing
    uint40 nextCommissionAt; // start of the raise; 0 if none is announced
    bool hasWithdrawalAddress; // the owner's stake and rewards are paid to another account
    // ---
    uint144 indexX48; // earnings of one share that never unbonds, since the node was registered; plus one
    uint96 commission; // vested commission that the owner can claim
    // ---
    uint144 unvestedX48; // rewards that have not vested
    uint40 vestedAt; // rewards are shared out up to this time; 0 if the node is not registered
    uint40 vestingEnd; // all of `unvestedX48` vests until this time
    uint32 generation; // number of slashes that took everything; positions of earlier generations are worthless
}

/// @notice A delegator's shares and earnings in a pool.
struct Position {
    uint112 shares; // not unbonding
    uint144 indexX48; // the pool's index up to which `earnedX48` counts
    // ---
    uint144 earnedX48; // not yet claimed
    uint32 generation; // the pool's, in which these shares count
}
