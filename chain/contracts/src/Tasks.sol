// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {Multicall} from "@openzeppelin/contracts/utils/Multicall.sol";
import {IBeacon} from "./interfaces/IBeacon.sol";
import {IStaking} from "./interfaces/IStaking.sol";
import {ITasks} from "./interfaces/ITasks.sol";
import {Joining} from "./phases/Joining.sol";
import {Judging} from "./phases/Judging.sol";
import {Publishing} from "./phases/Publishing.sol";
import {Settling} from "./phases/Settling.sol";
import {TaskBase} from "./phases/TaskBase.sol";
import {Training} from "./phases/Training.sol";
import {Keys, Round, Task} from "./types/Task.sol";

/// @title Tasks and their rounds: the clock, and what can be read.
/// @notice Every phase has a deadline after which anyone may `tick`, or waits for the beacon and can ask it anew: no
///         task gets stuck. Calls can be batched with `multicall`, so that one blob transaction fixes survivors, adds
///         up commitments and publishes.
contract Tasks is Joining, Training, Publishing, Judging, Settling, Multicall {
    constructor(IERC20 token_, IStaking staking_, IBeacon beacon_) TaskBase(token_, staking_, beacon_) {}

    /// @inheritdoc ITasks
    function tick(uint256 taskId) external {
        Task storage task = _known(taskId);
        Phase phase = task.state.phase;
        if (phase == Phase.Forming || phase == Phase.Drawing) return _askAnew(taskId, task, phase);

        _requireOver(taskId, task);
        if (phase == Phase.Joining) _closeJoining(taskId, task);
        else if (phase == Phase.Committing) _closeCommitting(taskId, task);
        else if (phase == Phase.Uploading) _blameAggregator(taskId, task, VoidReason.SurvivorsNotFixed);
        else if (phase == Phase.Publishing) _blameAggregator(taskId, task, VoidReason.NotPublished);
        else if (phase == Phase.Scoring) _closeScoring(taskId, task);
        else _settle(taskId, task);
    }

    /// @inheritdoc ITasks
    function params(uint256 taskId) external view returns (TaskParams memory) {
        return _known(taskId).params;
    }

    /// @inheritdoc ITasks
    function state(uint256 taskId) external view returns (TaskState memory) {
        return _known(taskId).state;
    }

    /// @inheritdoc ITasks
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
            seated: round.seated,
            stoodDown: round.stoodDown,
            revealed: round.revealed,
            seatWeight: round.seatWeight,
            acceptedCohorts: round.acceptedCohorts,
            medians: round.medians
        });
    }

    /// @inheritdoc ITasks
    function hospitals(uint256 taskId) external view returns (Hospital[] memory) {
        return _known(taskId).hospitals;
    }

    /// @inheritdoc ITasks
    function voters(uint256 taskId) external view returns (Voter[] memory) {
        return _known(taskId).voters;
    }

    /// @inheritdoc ITasks
    function cohortMembers(uint256 taskId, uint256 round, uint256 cohort) external view returns (uint256) {
        return _known(taskId).cohorts[Keys.entry(round, cohort)].members;
    }

    /// @dev The beacon's value went by unproven: wait for another. Nobody can use this to choose, since the value
    ///      that went by stays the only one until it can no longer be proven by anybody.
    function _askAnew(uint256 taskId, Task storage task, Phase phase) private {
        bool expired = beacon.expired(task.rounds[task.state.round].beaconRequest);
        if (!expired) revert PhaseNotOver(taskId, 0);
        _awaitBeacon(taskId, task, phase);
    }

    function _blameAggregator(uint256 taskId, Task storage task, VoidReason reason) private {
        _slashAggregator(taskId, task);
        _void(taskId, task, reason);
    }
}
