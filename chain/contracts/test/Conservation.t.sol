// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../src/interfaces/IStaking.sol";
import {ITaskRounds} from "../src/interfaces/ITaskRounds.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Bits} from "../src/libraries/Bits.sol";
import {Scores} from "../src/libraries/Scores.sol";
import {Fixture} from "./utils/Fixture.sol";
import {Log} from "./utils/Vm.sol";

/// @notice Any behaviour of nodes: every task ends, money is conserved at every step, and in the end
///         everybody can withdraw what is theirs, to the last unit.
contract ConservationTest is Fixture {
    using Bits for uint256;

    uint256 private _entropy;

    /// forge-config: default.fuzz.runs = 64
    function test_task_endsAndConservesWhateverNodesDo(uint256 entropy) public {
        _entropy = entropy;
        ITaskTypes.TaskParams memory params = _params();
        params.rounds = 3;
        params.harmfulSlashBps = uint16(_choose(10_001));
        params.notRevealedSlashBps = uint16(_choose(10_001));
        params.pool = uint128(_choose(2_000e18));
        params.aggregatorBond = 400e18;
        params.notPublishedSlashBps = 3_334 + uint16(_choose(1_667)); // at least twice a sixtieth of the largest pool
        params.tickBounty = uint128(_choose(params.pool / 1_600 + 1));
        if (_choose(2) == 0) {
            (params.masked, params.cohorts, params.minCohortSize, params.minHospitals) = (true, 1, 3, 3);
        }
        _propose(params);
        _joinAll();
        vm.recordLogs();
        // A round has nine phases, and nothing here waits for a phase in vain.
        for (uint256 steps = 0; tasks.state(id).phase != ITaskTypes.Phase.Ended; ++steps) {
            vm.assertLe(steps, 9 * 4);
            _step(tasks.state(id).phase);
            _assertConserved();
        }
        _assertExplained(params);
        // Bounties take at most a hundredth of the pool from the rewards.
        vm.assertLe(tasks.claimable(STRANGER) * 100, params.pool);
        _leaveAll();
    }

    function _step(ITaskTypes.Phase phase) private {
        if (phase == ITaskTypes.Phase.Forming) _form();
        else if (phase == ITaskTypes.Phase.Drawing) _draw();
        else if (phase == ITaskTypes.Phase.Committing) _commitSome();
        else if (phase == ITaskTypes.Phase.Uploading) _fixSome();
        else if (phase == ITaskTypes.Phase.Publishing) _publishPerhaps();
        else if (phase == ITaskTypes.Phase.Disputing) _disputePerhaps();
        else if (phase == ITaskTypes.Phase.Settling) tasks.settle(id, _round());
        else if (phase == ITaskTypes.Phase.Scoring) _scoreSome();
        else _revealSome();
        if (tasks.state(id).phase != phase) return;
        _pass();
        vm.prank(STRANGER);
        tasks.tick(id);
    }

    function _commitSome() private {
        uint256 members = _roundState().members;
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            if (members.has(i) && _choose(8) > 0) _commit(i);
        }
    }

    /// @dev All, most or none of each cohort survive, or nothing happens. An absent hospital may come back.
    function _fixSome() private {
        if (_choose(6) == 0) return;
        ITaskTypes.RoundState memory round = _roundState();
        uint256 survivors;
        for (uint256 cohort = 0; cohort < round.cohorts; ++cohort) {
            uint256 present = tasks.cohortMembers(id, _round(), cohort) & round.committed;
            if (_choose(4) == 0) present &= _choose(16);
            if (!round.viableCohorts.has(cohort)) continue;
            if (present.count() >= tasks.params(id).minCohortSize) survivors |= present;
        }
        _fix(survivors);
        if (tasks.state(id).phase != ITaskTypes.Phase.Publishing) return;
        uint256 returning = _choose(HOSPITALS);
        if (tasks.state(id).activeHospitals.has(returning)) return;
        if (tasks.hospitals(id)[returning].bond == 0) return;
        vm.prank(_hospital(returning));
        tasks.resume(id);
    }

    function _publishPerhaps() private {
        uint256 choice = _choose(6);
        if (choice == 0) return;
        if (choice > 2 || !tasks.params(id).masked) return _publishAll();
        uint256 round = _round();
        vm.prank(AGGREGATOR);
        tasks.accuseCohort(id, round, 0, "accusation", "evidence");
    }

    /// @dev Only readers use evidence.
    function _disputePerhaps() private {
        (uint256 round, uint256 named) = (_round(), _roundState().accused & _choose(16));
        if (named == 0) return;
        vm.warp(tasks.state(id).deadline - WINDOW);
        vm.prank(AGGREGATOR);
        tasks.nameCheaters(id, round, named);
    }

    function _scoreSome() private {
        for (uint256 i = 0; i < VOTERS; ++i) {
            if (!tasks.state(id).activeVoters.has(i)) continue;
            uint256 choice = _choose(8);
            if (choice == 0) continue;
            if (choice > 1 && _wins(i)) {
                _score(i, _opinion(i));
            } else {
                uint256 round = _round();
                vm.prank(_voter(i));
                tasks.standDown(id, round);
            }
        }
    }

    function _revealSome() private {
        for (uint256 i = 0; i < VOTERS; ++i) {
            if (_roundState().seated.has(i) && _choose(6) > 0) _reveal(i, _opinion(i));
        }
        if (_roundState().revealed == _roundState().seated) tasks.settle(id, _round());
    }

    /// @dev The same ballot for commitment and reveal. The voters agree more or less.
    function _opinion(uint256 voter) private view returns (int64[] memory scores) {
        scores = _scores(0);
        for (uint256 cohort = 0; cohort < scores.length; ++cohort) {
            bytes32 truth = keccak256(abi.encode(_roundState().seatSeed, cohort));
            scores[cohort] = int64(uint64(uint256(truth) % 8_000)) - 4_000 + int64(uint64(voter * 400));
            if (uint256(truth) >> 240 == voter) scores[cohort] = type(int64).min;
        }
        // All voters but one agree on the named hospitals.
        bool disagrees = uint256(_roundState().seatSeed) % 3 == 0;
        if (_roundState().named != 0 && disagrees == (voter > 0)) scores[0] = Scores.DOES_NOT_MATCH;
    }

    /// @dev The sum of `explain` over all rounds is every unit that left the pool or a bond, and no other.
    function _assertExplained(ITaskTypes.TaskParams memory params) private {
        uint256 paid;
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            paid += _explained(_hospital(i), IStaking.Role.Hospital, params.hospitalBond);
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            paid += _explained(_voter(i), IStaking.Role.Voter, params.voterBond);
        }
        paid += _explained(AGGREGATOR, IStaking.Role.Aggregator, params.aggregatorBond);
        vm.assertEq(paid + tasks.claimable(OPERATOR) + tasks.claimable(STRANGER) + _burnt(), params.pool);
    }

    /// @dev The parts of the pool when the task ended.
    function _burnt() private returns (uint256 burnt) {
        Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i = 0; i < logs.length; ++i) {
            if (logs[i].topics[0] == ITaskTypes.TaskEnded.selector) {
                (, burnt) = abi.decode(logs[i].data, (uint256, uint256));
            }
        }
    }

    function _explained(address node, IStaking.Role role, uint256 bond) private view returns (uint256 paid) {
        uint256 slashed;
        for (uint256 round = 0; round <= tasks.params(id).rounds; ++round) {
            ITaskTypes.Payout memory payout = tasks.explain(id, round, node);
            vm.assertEq(uint256(payout.role), uint256(role));
            vm.assertTrue(payout.reward == 0 || payout.reason == ITaskTypes.PayoutReason.Paid);
            paid += payout.reward;
            slashed += payout.slash;
        }
        vm.assertEq(bond - _locked(node, role), slashed);
        vm.assertLe(_earned(node), paid);
    }

    function _leaveAll() private {
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            _leave(_hospital(i), IStaking.Role.Hospital);
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            _leave(_voter(i), IStaking.Role.Voter);
        }
        _leave(AGGREGATOR, IStaking.Role.Aggregator);
        _leave(OPERATOR, IStaking.Role.Hospital);
        _leave(STRANGER, IStaking.Role.Hospital);
        vm.assertEq(token.balanceOf(address(tasks)), 0);
        vm.assertEq(tasks.totalClaimable(), 0);
        vm.assertEq(staking.totalStaked(), 0);
        _assertConserved();
    }

    function _leave(address node, IStaking.Role role) private {
        if (_locked(node, role) > 0) tasks.releaseBond(id, node);
        vm.assertEq(_locked(node, role), 0);
        vm.startPrank(node);
        if (tasks.claimable(node) > 0) tasks.claim();
        if (_claimable(node, role) > 0) staking.claim(node, role);
        (uint256 shares,,) = staking.positionOf(node, node, role);
        if (shares > 0) {
            uint256 request = staking.startUnbonding(node, role, shares);
            vm.warp(block.timestamp + UNBONDING);
            staking.withdraw(request);
        }
        vm.stopPrank();
    }

    function _claimable(address node, IStaking.Role role) private view returns (uint256 claimable) {
        (,, claimable) = staking.positionOf(node, node, role);
    }

    function _choose(uint256 choices) private returns (uint256) {
        _entropy = uint256(keccak256(abi.encode(_entropy)));
        return _entropy % choices;
    }
}
