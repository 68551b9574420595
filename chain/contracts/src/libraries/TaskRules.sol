// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {ITaskTypes} from "../interfaces/ITaskTypes.sol";
import {Decoys} from "./Decoys.sol";
import {Payouts} from "./Payouts.sol";

/// @title The limits of a task's parameters.
library TaskRules {
    uint256 internal constant MAX_NODES = 256; // a bit map's width
    uint256 internal constant MAX_COHORTS = 64; // three maps of cohorts share a storage slot
    uint256 internal constant MAX_BLOBS = 128; // two maps of blobs share a slot; a commitment must fit a transaction
    uint256 internal constant MAX_SHARDS = 16; // each new round of one reads the state of all
    uint256 internal constant MIN_MASKED = 3; // with two, each learns the other's update from their sum
    uint256 internal constant MIN_BITS = 2; // the quantiser's limits for an update's value
    uint256 internal constant MAX_BITS = 40;
    /// @dev A slash of two rounds' fees leaves nothing to an aggregator that lets a third of the rounds go by. A bond
    ///      that one slash consumes deters nobody from the second fault (`docs/economics.md`).
    uint256 internal constant SLASH_PER_FEE = 2;
    uint256 internal constant SLASHES_PER_BOND = 2;
    /// @dev Paid ticks: one for joining, and for committing, scoring and revealing in every round, statistics included.
    ///      A tick at another deadline, at most one more a round, voids the round or ends the task. All bounties
    ///      together take at most 1 % of the pool.
    uint256 internal constant TICKS_PER_ROUND = 4;
    uint256 internal constant BOUNTIES_BPS = 100;
    /// @dev No task locks stake, and with it delegators, for longer, whatever its nodes do.
    uint256 internal constant MAX_DURATION = 180 days;
    /// @dev Honest updates do some harm by chance. Only a loss of a hundredth of the metric's unit or more is a fault.
    int64 internal constant MAX_HARMFUL_BELOW = -10_000;
    /// @dev The part of its window by which the aggregator may overrun a phase, without its fee.
    uint256 internal constant GRACE_BPS = 5_000;
    uint256 internal constant DISPUTE_STEPS = 3; // each as long as publishing
    /// @dev The task ends if the beacon gives no value for so long.
    uint256 internal constant BEACON_WINDOW = 7 days;

    /// @dev Reverts with `ParamsInvalid` and the name of the first invalid field.
    function validate(ITaskTypes.TaskParams calldata p) internal pure {
        _require(p.aggregator != address(0), "aggregator");
        _require(p.hospitalBond > 0, "hospitalBond");
        _require(p.voterBond > 0, "voterBond");
        _require(p.aggregatorBond > 0, "aggregatorBond");
        _require(p.rounds > 0, "rounds");
        _require(p.minCohortSize >= (p.masked ? MIN_MASKED : 1), "minCohortSize");
        _require(p.maxHospitals <= MAX_NODES, "maxHospitals");
        _require(p.minHospitals >= p.minCohortSize && p.minHospitals <= p.maxHospitals, "minHospitals");
        _require(p.maxVoters > 0 && p.maxVoters <= MAX_NODES, "maxVoters");
        _require(p.minVoters <= p.maxVoters, "minVoters");
        _require(p.cohorts > 0 && p.cohorts <= MAX_COHORTS, "cohorts");
        _require(uint256(p.cohorts) * p.minCohortSize <= p.maxHospitals, "cohorts");
        _require(p.seats > 0 && p.seats <= p.maxVoters, "seats");
        _require(p.minReveals > 0 && p.minReveals <= p.seats, "minReveals");
        _require(p.statisticsBlobs > 0 && p.statisticsBlobs <= MAX_BLOBS, "statisticsBlobs");
        _require(p.updateBlobs > 0 && p.updateBlobs <= MAX_BLOBS, "updateBlobs");
        _require(p.shards > 0 && p.shards <= MAX_SHARDS, "shards");
        _require(p.rowsPerWeight > 0, "rowsPerWeight");
        _require(p.maxWeight > 0, "maxWeight");
        if (p.decoys) _validateDecoys(p);
        _require(p.harmfulBelow <= p.acceptFloor && p.harmfulBelow <= MAX_HARMFUL_BELOW, "harmfulBelow");
        _require(
            uint256(p.hospitalShareBps) + p.voterShareBps + p.aggregatorShareBps == Payouts.BASIS_POINTS, "shareBps"
        );
        if (p.rankDecayBps != 0) {
            // Each hospital is alone in its cohort.
            bool isAlone = p.minCohortSize == 1 && p.cohorts == p.maxHospitals;
            _require(isAlone && p.shards == 1 && p.rankDecayBps <= Payouts.BASIS_POINTS, "rankDecayBps");
            _require(p.rankFloor > 0, "rankFloor");
        }
        _require(p.harmfulSlashBps <= Payouts.BASIS_POINTS, "harmfulSlashBps");
        _require(p.withheldSlashBps <= Payouts.BASIS_POINTS, "withheldSlashBps");
        _require(p.notRevealedSlashBps <= Payouts.BASIS_POINTS, "notRevealedSlashBps");
        _require(p.failedDecoySlashBps <= Payouts.BASIS_POINTS, "failedDecoySlashBps");
        _require(p.notPublishedSlashBps <= Payouts.BASIS_POINTS / SLASHES_PER_BOND, "notPublishedSlashBps");
        requireOutweighed(p.aggregatorBond, p.notPublishedSlashBps, p.pool, p.rounds, p.aggregatorShareBps);
        _require(
            p.tickBounty * TICKS_PER_ROUND * (uint256(p.rounds) + 1) <= Payouts.portion(p.pool, BOUNTIES_BPS),
            "tickBounty"
        );
        _require(p.joinWindow > 0, "joinWindow");
        _require(p.commitWindow > 0, "commitWindow");
        _require(p.uploadWindow > 0, "uploadWindow");
        _require(p.publishWindow > 0, "publishWindow");
        _require(p.scoreWindow > 0, "scoreWindow");
        _require(p.revealWindow > 0, "revealWindow");
        _require(_longest(p) <= MAX_DURATION, "duration");
    }

    /// @notice The seconds by which the aggregator may overrun a phase of this window.
    function grace(uint256 window) internal pure returns (uint256) {
        return Payouts.portion(window, GRACE_BPS);
    }

    /// @notice The window with its grace period.
    function graced(uint256 window) internal pure returns (uint256) {
        return window + grace(window);
    }

    /// @dev The aggregator's slash must cost more than the fees that it could earn while it lets rounds go by.
    function requireOutweighed(uint256 bond, uint256 slashBps, uint256 pool, uint256 rounds, uint256 shareBps)
        internal
        pure
    {
        uint256 fee = Payouts.portion(Payouts.roundPart(pool, rounds, pool), shareBps);
        _require(Payouts.portion(bond, slashBps) >= SLASH_PER_FEE * fee, "aggregatorBond");
    }

    /// @notice A hospital's weight: its rows / `rowsPerWeight`, rounded up, between 1 and `maxWeight`. Rows are at
    ///         least 1.
    function weight(uint256 rows, uint256 rowsPerWeight, uint256 maxWeight) internal pure returns (uint32) {
        uint256 steps = (rows - 1) / rowsPerWeight + 1;
        return uint32(steps < maxWeight ? steps : maxWeight);
    }

    /// @notice The most hospitals of a cohort that can form: `n` hospitals make min(cohorts, n / size) cohorts of nearly
    ///         equal size, `size` being the least of one.
    function largestCohort(uint256 hospitals, uint256 cohorts, uint256 size) internal pure returns (uint256) {
        if (cohorts == 1) return hospitals;
        // All cohorts and every hospital, or one cohort of too few hospitals for two.
        return Math.max(Math.ceilDiv(hospitals, cohorts), Math.min(hospitals, 2 * size - 1));
    }

    /// @dev Published values must not overflow their lanes, or their commitment differs from the contract's.
    function _validateDecoys(ITaskTypes.TaskParams calldata p) private pure {
        _require(p.updateBits >= MIN_BITS && p.updateBits <= MAX_BITS, "updateBits");
        uint256 largest = largestCohort(p.maxHospitals, p.cohorts, p.minCohortSize);
        uint256 most = Decoys.highest(p.updateBits, largest * p.maxWeight);
        _require(p.laneBits <= Decoys.USABLE_BITS && most >> p.laneBits == 0, "laneBits");
        _require(p.decoyMargin > 0 && p.decoyMargin <= uint64(type(int64).max), "decoyMargin");
    }

    /// @dev The longest duration of a task in seconds: every phase lasts until its deadline, and the beacon dies in the
    ///      end. Waits for a living beacon come on top. They take minutes, and nobody can prolong them: anybody may
    ///      prove a value.
    function _longest(ITaskTypes.TaskParams calldata p) private pure returns (uint256) {
        // Publishing, disclosing, and the steps of the dispute in between.
        uint256 published = 2 * graced(p.publishWindow) + DISPUTE_STEPS * p.publishWindow;
        uint256 round = p.commitWindow + graced(p.uploadWindow) + published + p.scoreWindow + p.revealWindow;
        return p.joinWindow + (uint256(p.rounds) + 1) * round + BEACON_WINDOW;
    }

    function _require(bool holds, bytes32 field) private pure {
        if (holds) return;
        bytes memory name = bytes.concat(field);
        uint256 length;
        while (field[length] != 0) ++length;
        assembly ("memory-safe") {
            mstore(name, length)
        }
        revert ITaskTypes.ParamsInvalid(string(name));
    }
}
