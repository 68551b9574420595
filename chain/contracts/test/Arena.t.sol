// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../src/interfaces/IStaking.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Bits} from "../src/libraries/Bits.sol";
import {Payouts} from "../src/libraries/Payouts.sol";
import {Fixture} from "./utils/Fixture.sol";

/// @notice Tasks in which each hospital is alone in its cohort, and pay falls by rank.
contract ArenaTest is Fixture {
    using Bits for uint256;

    uint256 private constant BASE = 350e18; // the hospitals' part of a round

    function _arena() private pure returns (ITaskTypes.TaskParams memory params) {
        params = _params();
        (params.cohorts, params.minCohortSize) = (uint16(HOSPITALS), 1);
        (params.rankDecayBps, params.rankFloor) = (8_500, 100);
    }

    /// @dev A training round in which all voters give the cohorts these scores.
    function _play(int64[HOSPITALS] memory given) private {
        _propose(_arena());
        _joinAll();
        _runTraining();
        _form();
        _runTraining();
        _draw();
        int64[] memory scores = new int64[](HOSPITALS);
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            scores[i] = given[i];
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            _score(i, scores);
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            _reveal(i, scores);
        }
        tasks.settle(id, 1);
    }

    function _payout(uint256 cohort) private view returns (ITaskTypes.Payout memory) {
        uint256 members = tasks.cohortMembers(id, 1, cohort);
        vm.assertEq(members.count(), 1);
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            if (members.has(i)) return tasks.explain(id, 1, _hospital(i));
        }
        revert("a cohort without a hospital");
    }

    function test_settle_paysThreeRanksByTheFormula() public {
        _play([int64(5_000), -100, 9_000, 7_000]);
        vm.assertEq(tasks.roundState(id, 1).acceptedCohorts, 4); // the best alone
        // 1, .85 and .7225 of 2.5725.
        vm.assertEq(_payout(2).reward, BASE * 10_000 / 25_725);
        vm.assertEq(_payout(3).reward, BASE * 8_500 / 25_725);
        vm.assertEq(_payout(0).reward, BASE * 7_225 / 25_725);
        vm.assertEq(_payout(2).reward * 1_000 / BASE, 388); // .389
        vm.assertEq(_payout(3).reward * 1_000 / BASE, 330);
        vm.assertEq(_payout(0).reward * 1_000 / BASE, 280); // .281
        vm.assertTrue(_payout(1).reason == ITaskTypes.PayoutReason.Rejected);
        _assertConserved();
    }

    /// @dev A model that is hardly better than its base, such as a copy of it with some noise, has no rank.
    function test_settle_paysNoCopyOfTheBase() public {
        _play([int64(0), 4_000, 99, -20_000]);
        vm.assertEq(tasks.roundState(id, 1).acceptedCohorts, 2);
        vm.assertEq(_payout(1).reward, BASE);
        vm.assertTrue(_payout(0).reason == ITaskTypes.PayoutReason.NoImprovement);
        vm.assertTrue(_payout(2).reason == ITaskTypes.PayoutReason.NoImprovement);
        vm.assertTrue(_payout(3).reason == ITaskTypes.PayoutReason.Harmful);
        _assertConserved();
    }

    function test_settle_keepsTheBaseIfNothingImproves() public {
        _play([int64(0), 99, -1, -2]);
        vm.assertEq(tasks.roundState(id, 1).acceptedCohorts, 0);
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            vm.assertEq(_earned(_hospital(i)), 0);
        }
        _assertConserved();
    }

    function test_settle_ranksTheLowerIndexOfEqualMediansFirst() public {
        _play([int64(3_000), 6_000, 6_000, 3_000]);
        vm.assertEq(tasks.roundState(id, 1).acceptedCohorts, 2);
        uint256[4] memory order = [uint256(1), 2, 0, 3];
        for (uint256 i = 1; i < 4; ++i) {
            vm.assertEq(_payout(order[i]).part, _payout(order[i - 1]).part * 85 / 100);
        }
        _assertConserved();
    }

    function testFuzz_settle_paysTheRoundAndNoMore(int64[HOSPITALS] memory given) public {
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            given[i] = given[i] % 1_000_000;
        }
        _play(given);
        (uint256 paid, uint256 ranked) = (0, 0);
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            paid += _payout(i).reward;
            if (given[i] >= 100) ++ranked;
            for (uint256 j = 0; j < HOSPITALS; ++j) {
                if (given[i] > given[j]) vm.assertLe(_payout(j).reward, _payout(i).reward);
            }
        }
        vm.assertLe(paid, BASE);
        if (ranked > 0) vm.assertLe(BASE - paid, ranked); // rounding
        _assertConserved();
    }

    /// @dev The hash of a commitment names its sender, so its copy opens for nobody.
    function test_sumCommitments_refusesCopiedCommitment() public {
        _propose(_arena());
        _joinAll();
        _runTraining();
        _form();
        bytes32 copied = _update(1, 0).pointHashes[0];
        _commit(1, _hospital(1), _updateOf(copied)); // before the transaction that it copies
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            if (i != 1) _commit(i);
        }
        _fix(15);
        (uint256 first, uint256 copy) = (_cohortOf(1, _hospital(0)), _cohortOf(1, _hospital(1)));
        (ITaskTypes.Commitments memory all,) = _sum(1, first, 1, 0);
        tasks.sumCommitments(id, 1, first, 0, all);
        all.order = hex"01";
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.CommitmentMismatch.selector, copy, 0));
        tasks.sumCommitments(id, 1, copy, 0, all);
    }

    function test_propose_refusesRanksOfSharedCohorts() public {
        ITaskTypes.TaskParams memory params = _arena();
        params.rankDecayBps = uint16(Payouts.BASIS_POINTS + 1);
        _refuse(params);
        params = _arena();
        params.cohorts -= 1;
        _refuse(params);
        params = _arena();
        (params.minCohortSize, params.cohorts) = (2, 2);
        _refuse(params);
        params = _arena();
        params.shards = 2;
        _refuse(params);
    }

    function test_propose_refusesRanksWithoutImprovement() public {
        ITaskTypes.TaskParams memory params = _arena();
        params.rankFloor = 0;
        _refuse(params, "rankFloor");
    }

    function _refuse(ITaskTypes.TaskParams memory params) private {
        _refuse(params, "rankDecayBps");
    }

    function _refuse(ITaskTypes.TaskParams memory params, string memory field) private {
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.ParamsInvalid.selector, field));
        vm.prank(OPERATOR);
        tasks.propose(params);
    }
}
