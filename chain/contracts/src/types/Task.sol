// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../interfaces/IStaking.sol";
import {ITaskTypes} from "../interfaces/ITaskTypes.sol";

/// @notice How an account takes part in a task: in one role at most.
struct Membership {
    bool joined;
    IStaking.Role role;
    uint8 index; // among those of its role
}

/// @notice What a node put up for a task, and its last slash. One word.
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

/// @dev What settling has to do for a round, in this order.
enum SettlingStage {
    Cohorts, // to judge
    Hospitals, // to pay and slash
    Voters,
    Done
}

/// @dev Everything that a commitment or a publication touches, but for the maps of hospitals, is in the first slot.
struct Round {
    ITaskTypes.Outcome outcome;
    ITaskTypes.VoidReason voidReason;
    uint8 cohorts;
    uint8 blobs; // per hospital
    uint64 viableCohorts;
    uint64 summedCohorts;
    uint64 publishedCohorts;
    bool late; // the aggregator acted in a grace period
    SettlingStage stage; // of settling, and from where in it the next page goes on
    uint16 next;
    uint128 beaconRequest; // a block's number, or a drand round's
    uint128 totalGain; // all claims on the hospitals' part; here, and `tests` below, where it costs no slot of its own
    uint256 members;
    uint256 pending; // members that have not committed: zero only once all have, so writing it stays cheap
    uint256 survivors;
    uint256 seated;
    uint256 stoodDown;
    uint256 revealed;
    uint256 mismatched; // of these, who say that what is published does not match
    uint128 seatWeight; // stake is counted in 96 bits
    uint64 tests; // cohorts whose canary is told from the sum by the committee
    bytes32 cohortSeed;
    bytes32 seatSeed;
    bytes32 canaries; // `Canaries.commitment` of what the aggregator keeps secret until the reveals
    uint64 acceptedCohorts;
    uint64 turnedCohorts;
    uint128 budget; // what the round might pay, once it is concluded
    uint64 droppedCohorts; // viable when the survivors were fixed
    uint256 accused; // who committed in a cohort without a sum, which is a hospital's doing, as the aggregator says
    uint256 named; // of these, whose doing it is, as the aggregator says
    uint256 guilty; // the same once the committee agreed
    int64[] medians;
}

struct Cohort {
    uint256 members;
    uint128 summedBlobs; // in a canary round: opened
    uint128 publishedBlobs;
}

/// @dev A key is `Keys.entry(round, index, item)`.
struct Task {
    ITaskTypes.TaskState state;
    Bond aggregatorBond;
    ITaskTypes.TaskParams params;
    HospitalEntry[] hospitals;
    VoterEntry[] voters;
    mapping(address account => Membership) memberships;
    mapping(bytes32 keyHash => bool) transportKeys; // taken
    mapping(uint256 round => Round) rounds;
    mapping(bytes32 roundAndCohort => Cohort) cohorts;
    mapping(bytes32 roundHospitalBlob => bytes32) commitments; // keccak256 of the compressed point
    mapping(bytes32 roundCohortBlob => bytes32) sums; // versioned hash of what must be, or with canaries is, published
    mapping(bytes32 roundAndVoter => bytes32) scoreCommitments;
    mapping(bytes32 roundVoterWord => uint256) scores; // four to a word
}

using {committed} for Round global;

function committed(Round storage round) view returns (uint256) {
    return round.members & ~round.pending;
}

/// @title Keys of what a round stores by index. Hashed, so that no number, however large, reaches another's place.
library Keys {
    function entry(uint256 round, uint256 index) internal pure returns (bytes32) {
        return entry(round, index, 0);
    }

    function entry(uint256 round, uint256 index, uint256 item) internal pure returns (bytes32 key) {
        // Behind allocated memory, which `abi.encode` would take more of for each of thousands of keys.
        assembly ("memory-safe") {
            let free := mload(0x40)
            mstore(free, round)
            mstore(add(free, 32), index)
            mstore(add(free, 64), item)
            key := keccak256(free, 96)
        }
    }
}
