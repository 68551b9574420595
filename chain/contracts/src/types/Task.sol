// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../interfaces/IStaking.sol";
import {ITaskTypes} from "../interfaces/ITaskTypes.sol";

/// @notice An account's part in a task: one role at most.
struct Membership {
    bool joined;
    IStaking.Role role;
    uint8 index; // among those of its role
}

/// @notice A node's bond for a task, and its last slash. One word.
struct Bond {
    uint128 left;
    uint112 lastSlash;
    uint16 lastRound; // of the last slash
}

struct HospitalEntry {
    address node;
    uint32 weight;
    Bond bond;
}

struct VoterEntry {
    address node;
    Bond bond;
    bytes32 keyHash;
}

/// @dev The steps of settling a round, in order.
enum SettlingStage {
    Cohorts, // to judge
    Hospitals, // to pay and slash
    Voters,
    Done
}

/// @dev The first slot holds all that a commitment or a publication touches, except the maps of hospitals.
struct Round {
    ITaskTypes.Outcome outcome;
    ITaskTypes.VoidReason voidReason;
    uint8 cohorts;
    uint8 blobs; // per hospital
    uint64 viableCohorts;
    uint64 summedCohorts;
    uint64 publishedCohorts;
    bool late; // the aggregator acted in a grace period
    SettlingStage stage;
    uint16 next; // the index in `stage` at which the next page goes on
    uint128 beaconRequest; // a block's number, or a drand round's
    uint128 totalGain; // all claims on the hospitals' part; here, like `tests` below, it needs no slot of its own
    uint256 members;
    uint256 pending; // members that have not committed: a slot that is not zero is cheap to write
    uint256 survivors;
    uint256 seated;
    uint256 stoodDown;
    uint256 revealed;
    uint256 mismatched; // revealed voters that say that nothing matches
    uint128 seatWeight; // Staking counts stake in 96 bits
    uint64 tests; // cohorts whose decoy the committee can tell from the sum
    bytes32 cohortSeed;
    bytes32 seatSeed;
    bytes32 decoys; // `Decoys.commitment` of the secrets that the aggregator discloses after the reveals
    uint64 acceptedCohorts;
    uint64 flippedCohorts; // sign-flipped
    uint128 budget; // the most that the round pays, once it is concluded
    uint64 droppedCohorts; // dropped after the survivors were fixed
    uint256 accused; // hospitals that committed in cohorts that the aggregator accused
    uint256 named; // accused hospitals that the aggregator named as cheaters
    uint256 guilty; // named hospitals, once the committee agreed
    int64[] medians;
}

struct Cohort {
    uint256 members;
    uint128 summedBlobs; // in a decoy round: disclosed blobs
    uint128 publishedBlobs;
}

/// @notice The running hashes of a cohort's commitments in memory, so that a batch reads and writes each slot once.
struct Running {
    uint256 cohort;
    uint256 members;
    bytes32[] hashes; // one per blob
}

/// @notice The sum of the points that a cohort's survivors show for one blob.
struct Sum {
    uint256 taskId;
    uint256 round;
    uint256 cohort;
    uint256 blob;
    bool isNegated;
    uint256 count; // of the survivors that are in it
    uint256 weight; // theirs
    bytes hospitals; // their indices, one byte each, in the order of their commitments
    bytes points; // theirs in that order, compressed, 48 bytes each
    bytes terms; // for `Bls12381.weightedSum`
}

/// @dev A key is `Keys.entry(round, index, item)`.
struct Task {
    ITaskTypes.TaskState state;
    Bond aggregatorBond;
    ITaskTypes.TaskParams params;
    HospitalEntry[] hospitals;
    VoterEntry[] voters;
    mapping(address account => Membership) memberships;
    mapping(bytes32 keyHash => bool) transportKeys; // true if taken
    mapping(uint256 round => Round) rounds;
    mapping(bytes32 roundAndCohort => Cohort) cohorts;
    mapping(bytes32 roundCohortBlob => bytes32) commitments; // `RunningHash`
    mapping(bytes32 roundCohortBlob => bytes32) sums; // versioned hash to be published; with decoys, published
    mapping(bytes32 roundAndVoter => bytes32) scoreCommitments;
    mapping(bytes32 roundVoterWord => uint256) scores; // four to a word
}

using {committed} for Round global;

function committed(Round storage round) view returns (uint256) {
    return round.members & ~round.pending;
}

/// @title Storage keys of a round's entries. They are hashes, so that no index, however large, reaches another entry.
library Keys {
    function entry(uint256 round, uint256 index) internal pure returns (bytes32) {
        return entry(round, index, 0);
    }

    function entry(uint256 round, uint256 index, uint256 item) internal pure returns (bytes32 key) {
        // Written behind allocated memory: `abi.encode` would allocate more for each of thousands of keys.
        assembly ("memory-safe") {
            let free := mload(0x40)
            mstore(free, round)
            mstore(add(free, 32), index)
            mstore(add(free, 64), item)
            key := keccak256(free, 96)
        }
    }
}
