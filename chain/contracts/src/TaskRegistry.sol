// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IBeacon} from "./interfaces/IBeacon.sol";
import {IStaking} from "./interfaces/IStaking.sol";
import {Joining} from "./phases/Joining.sol";
import {Proposing} from "./phases/Proposing.sol";
import {TaskBase} from "./phases/TaskBase.sol";
import {HospitalEntry, Keys, Round, Task, VoterEntry} from "./types/Task.sol";

/// @title The part of `Tasks` around its rounds: proposals, joining and leaving, and reads.
/// @notice It only has code, which runs in the storage of `Tasks`.
contract TaskRegistry is Proposing, Joining {
    /// @param guardian_ the account that may stop proposals; zero for nobody.
    constructor(IERC20 token_, IStaking staking_, IBeacon beacon_, address guardian_)
        TaskBase(token_, staking_, beacon_)
        Proposing(guardian_)
    {}

    function proposalsStopped() external view returns (bool) {
        return _proposalsStopped;
    }

    function taskCount() external view returns (uint256) {
        return _taskCount;
    }

    function params(uint256 taskId) external view returns (TaskParams memory) {
        return _known(taskId).params;
    }

    function state(uint256 taskId) external view returns (TaskState memory) {
        return _known(taskId).state;
    }

    function roundState(uint256 taskId, uint256 number) external view returns (RoundState memory) {
        Round storage round = _known(taskId).rounds[number];
        return RoundState({
            outcome: round.outcome,
            voidReason: round.voidReason,
            cohorts: round.cohorts,
            beaconRequest: round.beaconRequest,
            cohortSeed: round.cohortSeed,
            seatSeed: round.seatSeed,
            members: round.members,
            committed: round.committed(),
            viableCohorts: round.viableCohorts,
            survivors: round.survivors,
            summedCohorts: round.summedCohorts,
            publishedCohorts: round.publishedCohorts,
            droppedCohorts: round.droppedCohorts,
            accused: round.accused,
            named: round.named,
            guilty: round.guilty,
            flippedCohorts: round.flippedCohorts,
            seated: round.seated,
            stoodDown: round.stoodDown,
            revealed: round.revealed,
            mismatched: round.mismatched,
            seatWeight: round.seatWeight,
            acceptedCohorts: round.acceptedCohorts,
            budget: round.budget,
            late: round.late,
            medians: round.medians
        });
    }

    function hospitals(uint256 taskId) external view returns (Hospital[] memory list) {
        HospitalEntry[] storage entries = _known(taskId).hospitals;
        list = new Hospital[](entries.length);
        for (uint256 i = 0; i < list.length; ++i) {
            list[i] = Hospital(entries[i].node, entries[i].weight, entries[i].bond.left);
        }
    }

    function voters(uint256 taskId) external view returns (Voter[] memory list) {
        VoterEntry[] storage entries = _known(taskId).voters;
        list = new Voter[](entries.length);
        for (uint256 i = 0; i < list.length; ++i) {
            list[i] = Voter(entries[i].node, entries[i].bond.left, entries[i].keyHash);
        }
    }

    function cohortMembers(uint256 taskId, uint256 round, uint256 cohort) external view returns (uint256) {
        return _known(taskId).cohorts[Keys.entry(round, cohort)].members;
    }

    function expectedBlobHash(uint256 taskId, uint256 round, uint256 cohort, uint256 blob)
        external
        view
        returns (bytes32)
    {
        return _known(taskId).sums[Keys.entry(round, cohort, blob)];
    }

    function claimable(address account) external view returns (uint256) {
        return _claimable[account];
    }

    function totalClaimable() external view returns (uint256) {
        return _totalClaimable;
    }
}
