// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Gains} from "../src/libraries/Gains.sol";
import {EnsemblesFixture} from "./utils/EnsemblesFixture.sol";

/// @notice Gains of tasks, against a reference that knows neither `Gains` nor `Bits`.
contract GainsTest is EnsemblesFixture {
    function _reference(ITaskTypes.RoundState memory round) private pure returns (uint256) {
        if (round.outcome == ITaskTypes.Outcome.Void) return 0;
        (int256 sum, int256 count) = (0, 0);
        for (uint256 i = 0; i < round.medians.length; ++i) {
            if (round.acceptedCohorts / 2 ** i % 2 == 0) continue;
            (sum, count) = (sum + round.medians[i], count + 1);
        }
        return count == 0 || sum < 0 ? 0 : uint256(sum / count);
    }

    function _assertGain(uint256 wanted) private view {
        uint256 sum;
        for (uint256 round = 1; round <= _round(); ++round) {
            sum += _reference(tasks.roundState(id, round));
        }
        vm.assertEq(sum, wanted);
        vm.assertEq(modelShares.minting(id).gain, wanted);
    }

    /// @dev Rounds that improve, do not, hurt, and are void.
    function test_mint_addsUpTheRoundsThatImprove() public {
        ITaskTypes.TaskParams memory params = _params();
        (params.rounds, params.acceptFloor) = (6, -5_000);
        _begin(params);
        _runRound(_scoresOf(3_000, 1_001)); // 2,000
        _loseRound();
        _runRound(_scoresOf(-4_000, -1_000)); // accepted, and harmful together
        _runRound(_scoresOf(-9_000, 700)); // one is accepted
        _runRound(_scoresOf(-300, 901)); // 300
        _runRound(_scoresOf(-6_000, -6_000)); // none
        _showAndMint();
        _assertGain(2_000 + 700 + 300);
    }

    /// @dev Only the best hospital's model is accepted.
    function test_mint_countsAnArenasBest() public {
        ITaskTypes.TaskParams memory params = _params();
        (params.cohorts, params.minCohortSize) = (uint16(HOSPITALS), 1);
        (params.rankDecayBps, params.rankFloor) = (8_500, 100);
        _begin(params);
        int64[] memory scores = new int64[](HOSPITALS);
        (scores[0], scores[1], scores[2], scores[3]) = (5_000, -100, 9_000, 7_000);
        _runRound(scores);
        (scores[0], scores[1], scores[2], scores[3]) = (0, 99, -1, -2); // no rank
        _runRound(scores);
        _showAndMint();
        _assertGain(9_000);
    }

    function test_mint_countsEachRoundOnceInPagesOfAnySize(uint256 seed) public {
        _begin(_params());
        _runRound(3_000);
        _runRound(1_000);
        modelShares.showTerms(id, HEAD, _terms());
        for (uint256 page = 0; !modelShares.minting(id).isDone; ++page) {
            modelShares.mint(id, uint256(keccak256(abi.encode(seed, page))) % 5);
        }
        _assertGain(4_000);
    }

    function testFuzz_gain_agreesWithTheReference(int64[] memory medians, uint256 accepted, bool isVoid) public pure {
        if (medians.length > 64) {
            assembly {
                mstore(medians, 64)
            }
        }
        ITaskTypes.RoundState memory round;
        round.outcome = isVoid ? ITaskTypes.Outcome.Void : ITaskTypes.Outcome.Settled;
        (round.medians, round.acceptedCohorts) = (medians, accepted % 2 ** medians.length);
        vm.assertEq(Gains.gain(round), _reference(round));
    }

    function test_gain_atItsLimits() public pure {
        ITaskTypes.RoundState memory round;
        (round.outcome, round.medians) = (ITaskTypes.Outcome.Settled, new int64[](64));
        for (uint256 i = 0; i < 64; ++i) {
            round.medians[i] = type(int64).max;
        }
        round.acceptedCohorts = type(uint64).max;
        vm.assertEq(Gains.gain(round), uint64(type(int64).max));
        round.medians[0] = type(int64).min;
        round.acceptedCohorts = 1;
        vm.assertEq(Gains.gain(round), 0);
        round.acceptedCohorts = 0;
        vm.assertEq(Gains.gain(round), 0);
        round.outcome = ITaskTypes.Outcome.Pending;
        round.acceptedCohorts = 2;
        vm.assertEq(Gains.gain(round), 0);
    }
}
