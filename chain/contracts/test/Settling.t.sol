// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../src/interfaces/IStaking.sol";
import {ITaskRounds} from "../src/interfaces/ITaskRounds.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Bits} from "../src/libraries/Bits.sol";
import {Fixture} from "./utils/Fixture.sol";

contract SettlingTest is Fixture {
    using Bits for uint256;

    /// @dev Seals and reveals one pair of scores per voter.
    function _judge(int64[2][3] memory given) private {
        for (uint256 i = 0; i < VOTERS; ++i) {
            _score(i, _pair(given[i]));
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            _reveal(i, _pair(given[i]));
        }
    }

    function _pair(int64[2] memory given) private pure returns (int64[] memory scores) {
        scores = new int64[](2);
        (scores[0], scores[1]) = (given[0], given[1]);
    }

    function test_settle_paysAcceptedAndSlashesHarmful() public {
        _toScoring();
        _judge([[int64(3_000), -20_000], [int64(3_100), -21_000], [int64(2_900), type(int64).min]]);
        tasks.settle(id, 1);
        ITaskTypes.RoundState memory round = tasks.roundState(id, 1);
        vm.assertEq(round.medians[0], 3_000);
        vm.assertEq(round.medians[1], -21_000);
        vm.assertEq(round.acceptedCohorts, 1);

        uint256 accepted = tasks.cohortMembers(id, 1, 0);
        uint256 weight;
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            if (accepted.has(i)) weight += i + 1;
        }
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            bool isPaid = accepted.has(i);
            vm.assertEq(_earned(_hospital(i)), isPaid ? 350e18 * (i + 1) / weight : 0);
            vm.assertEq(_locked(_hospital(i), IStaking.Role.Hospital), isPaid ? 100e18 : 80e18);
        }
        vm.assertEq(_earned(_voter(0)), uint256(100e18) / 3);
        vm.assertEq(_earned(_voter(2)), 0); // far from the second median
        _assertConserved();
    }

    function test_settle_leavesWhatIsNeitherAcceptedNorHarmful() public {
        _toRevealing(-500);
        for (uint256 i = 0; i < VOTERS; ++i) {
            _reveal(i, _scores(-500));
        }
        tasks.settle(id, 1);
        vm.assertEq(tasks.roundState(id, 1).acceptedCohorts, 0);
        vm.assertEq(_earned(_hospital(0)), 0);
        vm.assertEq(_locked(_hospital(0), IStaking.Role.Hospital), 100e18);
        vm.assertGt(_earned(_voter(0)), 0);
        _assertConserved();
    }

    function test_settle_paysNoHospitalForNoImprovement() public {
        _toRevealing(0);
        for (uint256 i = 0; i < VOTERS; ++i) {
            _reveal(i, _scores(0));
        }
        tasks.settle(id, 1);
        vm.assertEq(tasks.roundState(id, 1).acceptedCohorts, 3);
        vm.assertEq(_earned(_hospital(0)), 0);
        _assertConserved();
    }

    function test_settle_slashesWhoDidNotReveal() public {
        _toRevealing(1_000);
        _reveal(0, _scores(1_000));
        _reveal(2, _scores(1_000));
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PhaseNotOver.selector, id, tasks.state(id).deadline));
        tasks.settle(id, 1);
        _pass();
        vm.expectEmit(address(tasks));
        emit ITaskTypes.Slashed(id, 1, _voter(1), 25e18, ITaskTypes.SlashReason.NotRevealed);
        tasks.settle(id, 1);
        // The share of the seat that fell silent goes to nobody.
        vm.assertEq(_earned(_voter(0)), uint256(100e18) / 3);
        _assertConserved();
    }

    function test_settle_dropsVoterWithoutBond() public {
        ITaskTypes.TaskParams memory params = _params();
        params.notRevealedSlashBps = 10_000;
        _propose(params);
        _joinAll();
        _runTraining();
        _form();
        _runTraining();
        _draw();
        for (uint256 i = 0; i < VOTERS; ++i) {
            _score(i, _scores(1_000));
        }
        _reveal(0, _scores(1_000));
        _reveal(2, _scores(1_000));
        _pass();
        tasks.settle(id, 1);
        vm.assertEq(tasks.state(id).activeVoters, 5);
        _form();
        _runTraining();
        _draw();
        vm.assertEq(_roundState().seatWeight, 100e18);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NotAMember.selector, id, _voter(1)));
        vm.prank(_voter(1));
        tasks.standDown(id, 2);
    }

    function test_settle_dropsHospitalWithoutBondForGood() public {
        ITaskTypes.TaskParams memory params = _params();
        params.harmfulSlashBps = 10_000;
        _propose(params);
        _joinAll();
        _runTraining();
        _form();
        _runTraining();
        _draw();
        _judge([[int64(3_000), -20_000], [int64(3_000), -20_000], [int64(3_000), -20_000]]);
        tasks.settle(id, 1);
        uint256 good = tasks.cohortMembers(id, 1, 0);
        vm.assertEq(tasks.state(id).activeHospitals, good);
        _form();
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            if (good.has(i)) continue;
            vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NotAMember.selector, id, _hospital(i)));
            vm.prank(_hospital(i));
            tasks.resume(id);
        }
        _assertConserved();
    }

    function test_settle_paysAggregatorByWhatMadeItIntoTheSums() public {
        ITaskTypes.TaskParams memory params = _params();
        (params.cohorts, params.minCohortSize) = (1, 2);
        _propose(params);
        _joinAll();
        _runTraining();
        _form();
        _commitAll();
        _fix(7); // weights 1, 2, 3 of 10
        _publishAll();
        _draw();
        _scoreAll(1_000);
        tasks.settle(id, 1);
        vm.assertEq(_earned(AGGREGATOR), 30e18);
        vm.assertEq(_earned(_hospital(3)), 0);
        _assertConserved();
    }

    function test_settle_refusedTwice() public {
        _toForming();
        _runRound(1_000);
        vm.expectRevert(
            abi.encodeWithSelector(
                ITaskTypes.WrongPhase.selector, id, ITaskTypes.Phase.Forming, ITaskTypes.Phase.Revealing
            )
        );
        tasks.settle(id, 1);
        _form();
        _runTraining();
        _draw();
        _scoreAll(1_000);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.WrongRound.selector, id, 2, 1));
        tasks.settle(id, 1);
    }

    function test_settle_conservesWhateverTheScores(int64[2][3] memory given) public {
        _toScoring();
        _judge(given);
        tasks.settle(id, 1);
        vm.assertEq(uint256(tasks.roundState(id, 1).outcome), uint256(ITaskTypes.Outcome.Settled));
        _assertConserved();
    }
}
