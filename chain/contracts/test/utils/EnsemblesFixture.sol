// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IModelShares} from "../../src/interfaces/IModelShares.sol";
import {ITaskTypes} from "../../src/interfaces/ITaskTypes.sol";
import {ChannelsFixture} from "./ChannelsFixture.sol";

/// @notice Ended tasks by their rounds' scores, and ensembles of them.
abstract contract EnsemblesFixture is ChannelsFixture {
    uint256 internal constant FIRST = (1 << 48) + 1; // the number of the first ensemble

    /// @dev A training round in which all voters give each cohort its score.
    function _runRound(int64[] memory scores) internal {
        _form();
        _runTraining();
        _draw();
        for (uint256 i = 0; i < VOTERS; ++i) {
            _score(i, scores);
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            _reveal(i, scores);
        }
        tasks.settle(id, _round());
    }

    function _scoresOf(int64 first, int64 second) internal pure returns (int64[] memory scores) {
        scores = new int64[](2);
        (scores[0], scores[1]) = (first, second);
    }

    /// @dev No seated voter scores.
    function _loseRound() internal {
        uint256 round = _round();
        _form();
        _runTraining();
        _draw();
        _pass();
        tasks.tick(id);
        _assertVoid(round, ITaskTypes.VoidReason.TooFewScores);
    }

    /// @dev To the first training round.
    function _begin(ITaskTypes.TaskParams memory params) internal {
        bool isOdd = tasks.taskCount() % 2 == 0;
        params.specHash = keccak256(isOdd ? _file("20", "10", "55", "15") : _file("7", "10", "68", "15"));
        _propose(params);
        _joinAll();
        _runTraining();
    }

    function _serverPercent(uint256 taskId) internal pure returns (uint8) {
        return taskId % 2 == 1 ? 20 : 7;
    }

    function _showAndMint() internal {
        modelShares.showTerms(id, HEAD, id % 2 == 1 ? _terms() : IModelShares.Terms(7, 10, 68, 15));
        modelShares.mint(id, 1_000);
    }

    /// @dev A task of one round, whose gain is the score.
    function _member(int64 score) internal returns (uint256) {
        ITaskTypes.TaskParams memory params = _params();
        (params.rounds, params.pool) = (1, 50e18);
        (params.hospitalBond, params.voterBond, params.aggregatorBond) = (10e18, 10e18, 20e18);
        _begin(params);
        _runRound(score);
        _showAndMint();
        return id;
    }

    function _members(uint256 count) internal returns (uint256[] memory taskIds) {
        taskIds = new uint256[](count);
        for (uint256 i = 0; i < count; ++i) {
            taskIds[i] = _member(int64(int256(1_000 + 700 * i)));
        }
    }

    function _pair(uint256 first, uint256 second) internal pure returns (uint256[] memory taskIds) {
        taskIds = new uint256[](2);
        (taskIds[0], taskIds[1]) = (first, second);
    }
}
