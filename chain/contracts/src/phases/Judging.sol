// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../interfaces/IStaking.sol";
import {ITaskRounds} from "../interfaces/ITaskRounds.sol";
import {Bits} from "../libraries/Bits.sol";
import {Scores} from "../libraries/Scores.sol";
import {Tickets} from "../libraries/Tickets.sol";
import {Keys, Round, Task} from "../types/Task.sol";
import {Concluding} from "./Concluding.sol";

/// @title Voters' part of a round: seats, committed scores, revealed scores.
/// @notice A seed that is requested after the sums are public draws the seats. So nobody knows whom to bribe before
///         there are sums to judge.
abstract contract Judging is Concluding, ITaskRounds {
    using Bits for uint256;

    /// @inheritdoc ITaskRounds
    function drawSeats(uint256 taskId, bytes calldata beaconProof) external {
        Task storage task = _in(taskId, Phase.Drawing);
        uint256 number = task.state.round;
        Round storage round = task.rounds[number];
        bytes32 seed = beacon.seed(round.beaconRequest, beaconProof);
        uint256 weight;
        uint256 active = task.state.activeVoters;
        for (uint256 i = 0; active >> i != 0; ++i) {
            if (active.has(i)) weight += task.voters[i].bond.left;
        }
        round.seatSeed = seed;
        round.seatWeight = uint128(weight);
        emit SeatsDrawn(taskId, number, seed, weight);
        _startPhase(taskId, task, Phase.Scoring, task.params.scoreWindow);
    }

    /// @inheritdoc ITaskRounds
    function commitScores(
        uint256 taskId,
        uint256 number,
        bytes calldata publicKey,
        bytes calldata ticket,
        bytes32 commitment
    ) external {
        (Task storage task, Round storage round, uint256 index) = _scoring(taskId, number);
        if (keccak256(publicKey) != task.voters[index].keyHash) revert VoterKeyMismatch(msg.sender);
        bytes memory message = Tickets.message(taskId, number, round.seatSeed, msg.sender);
        if (!staking.verifyTicket(publicKey, ticket, message)) revert TicketInvalid(msg.sender);
        _requireWon(ticket, Tickets.threshold(task.params.seats, task.voters[index].bond.left, round.seatWeight));

        round.seated = round.seated.with(index);
        task.scoreCommitments[Keys.entry(number, index)] = commitment;
        emit ScoresCommitted(taskId, number, msg.sender, commitment);
        if (_everybodyActed(task, round)) _closeScoring(taskId, task);
    }

    /// @inheritdoc ITaskRounds
    function standDown(uint256 taskId, uint256 number) external {
        (Task storage task, Round storage round, uint256 index) = _scoring(taskId, number);
        round.stoodDown = round.stoodDown.with(index);
        emit VoterStoodDown(taskId, number, msg.sender);
        if (_everybodyActed(task, round)) _closeScoring(taskId, task);
    }

    /// @inheritdoc ITaskRounds
    function revealScores(uint256 taskId, uint256 number, int64[] calldata scores, bytes32 salt) external {
        (Task storage task, Round storage round) = _open(taskId, Phase.Revealing, number);
        uint256 index = _member(taskId, task, msg.sender, IStaking.Role.Voter, type(uint256).max);
        if (!round.seated.has(index)) revert NotSeated(taskId, msg.sender);
        if (round.revealed.has(index)) revert AlreadyActed(taskId, msg.sender);
        uint256 wanted = _hasDecoys(task, number) ? 2 * uint256(round.cohorts) : round.cohorts;
        if (scores.length != wanted) revert ScoreCountWrong(scores.length, wanted);
        bytes32 commitment = Scores.commitment(taskId, number, msg.sender, scores, salt);
        if (commitment != task.scoreCommitments[Keys.entry(number, index)]) revert RevealMismatch(msg.sender);

        Scores.save(task.scores, number, index, scores);
        round.revealed = round.revealed.with(index);
        if (scores[0] == Scores.DOES_NOT_MATCH && _isAsked(task, round)) {
            round.mismatched = round.mismatched.with(index);
        }
        emit ScoresRevealed(taskId, number, msg.sender, scores);
    }

    /// @dev Ends the taking of seats. The round goes on if enough were taken.
    function _closeScoring(uint256 taskId, Task storage task) internal {
        bool enough = task.rounds[task.state.round].seated.count() >= task.params.minReveals;
        if (enough) _startPhase(taskId, task, Phase.Revealing, task.params.revealWindow);
        else _conclude(taskId, task, VoidReason.TooFewScores);
    }

    function _scoring(uint256 taskId, uint256 number)
        private
        view
        returns (Task storage task, Round storage round, uint256 index)
    {
        (task, round) = _open(taskId, Phase.Scoring, number);
        index = _member(taskId, task, msg.sender, IStaking.Role.Voter, task.state.activeVoters);
        if ((round.seated | round.stoodDown).has(index)) revert AlreadyActed(taskId, msg.sender);
    }

    function _everybodyActed(Task storage task, Round storage round) private view returns (bool) {
        return (round.seated | round.stoodDown).contains(task.state.activeVoters);
    }

    /// @dev True if voters may say that nothing matches: the contract could not compare the sums, or cheaters are
    ///      named.
    function _isAsked(Task storage task, Round storage round) private view returns (bool) {
        return task.params.digests || task.params.decoys || round.named != 0;
    }

    function _requireWon(bytes calldata ticket, uint256 threshold) private view {
        uint256 draw = Tickets.draw(ticket);
        if (threshold < type(uint256).max && draw >= threshold) revert SeatNotWon(msg.sender, draw, threshold);
    }
}
