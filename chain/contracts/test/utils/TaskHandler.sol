// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../../src/interfaces/IStaking.sol";
import {ITaskTypes} from "../../src/interfaces/ITaskTypes.sol";
import {Bits} from "../../src/libraries/Bits.sol";
import {Scores} from "../../src/libraries/Scores.sol";
import {TaskRules} from "../../src/libraries/TaskRules.sol";
import {DecoyFixture} from "./DecoyFixture.sol";
import {Signer} from "./Crypto.sol";

/// @notice All roles of a task. Each makes a call that is allowed at the moment, or none. No call here may revert.
contract TaskHandler is DecoyFixture {
    using Bits for uint256;

    mapping(uint256 task => mapping(uint256 round => mapping(uint256 voter => int64))) private _opinionOf;
    mapping(uint256 task => mapping(uint256 round => bool)) private _areDecoysSet;

    function start() external {
        setUp();
        _begin();
    }

    // Roles.

    function hospitalActs(uint256 who) public {
        who %= HOSPITALS;
        ITaskTypes.TaskState memory state = tasks.state(id);
        if (state.phase == ITaskTypes.Phase.Committing && _isOpen()) {
            ITaskTypes.RoundState memory round = _roundState();
            if (round.members.has(who) && !round.committed.has(who)) return _commit(who);
        }
        uint256 asked = _roundState().accused & _roundState().survivors;
        if (state.phase == ITaskTypes.Phase.Disputing && asked.has(who) && !_canName()) {
            uint256 step = block.timestamp < state.deadline - 2 * WINDOW ? 0 : 1;
            vm.prank(_hospital(who));
            return tasks.submitEvidence(id, state.round, step, "evidence");
        }
        bool canResume = state.phase == ITaskTypes.Phase.Committing || state.phase == ITaskTypes.Phase.Uploading
            || state.phase == ITaskTypes.Phase.Publishing;
        if (!canResume || state.activeHospitals.has(who) || tasks.hospitals(id)[who].bond == 0) return;
        vm.prank(_hospital(who));
        tasks.resume(id);
    }

    /// @dev Stops seldom: most tasks are to see their last round.
    function operatorActs(uint256 chance) external {
        ITaskTypes.TaskState memory state = tasks.state(id);
        if (state.phase == ITaskTypes.Phase.Joining && chance % 16 != 0) return _fundSome(chance);
        if (chance % 16 != 0 || state.stopping || state.phase == ITaskTypes.Phase.Ended) return;
        vm.prank(OPERATOR);
        tasks.stop(id);
    }

    /// @param left of whose updates go into the sums, as far as it keeps cohorts above their minimum; and whom it
    ///        names.
    function aggregatorActs(uint256 left) external {
        if (!_isOpen()) return;
        ITaskTypes.Phase phase = tasks.state(id).phase;
        ITaskTypes.RoundState memory round = _roundState();
        if (phase == ITaskTypes.Phase.Uploading) return _fix(_choice(round, left));
        if (phase == ITaskTypes.Phase.Disputing) return _blame(round.accused, left);
        if (phase == ITaskTypes.Phase.Publishing && _hasDecoys() && !_areDecoysSet[id][_round()]) {
            _areDecoysSet[id][_round()] = true;
            return _setDecoys();
        }
        for (uint256 cohort = 0; cohort < round.cohorts; ++cohort) {
            if (!round.viableCohorts.has(cohort)) continue;
            if (phase == ITaskTypes.Phase.Disclosing && !round.summedCohorts.has(cohort)) {
                return _discloseCohort(cohort);
            }
            bool isNext = phase == ITaskTypes.Phase.Publishing && !round.publishedCohorts.has(cohort);
            if (isNext) return _publishOrDrop(cohort, left);
        }
    }

    function voterActs(uint256 who, bool takesSeat, int64 opinion) public {
        who %= VOTERS;
        if (!_isOpen()) return;
        ITaskTypes.TaskState memory state = tasks.state(id);
        ITaskTypes.RoundState memory round = _roundState();
        if (state.phase == ITaskTypes.Phase.Revealing) {
            if (round.seated.has(who) && !round.revealed.has(who)) {
                _reveal(who, _ballotOf(_opinionOf[id][state.round][who]));
            }
        } else if (state.phase == ITaskTypes.Phase.Scoring) {
            bool isDone = (round.seated | round.stoodDown).has(who) || !state.activeVoters.has(who);
            if (isDone) return;
            if (takesSeat && _wins(who)) {
                opinion = opinion % 5_000;
                _opinionOf[id][state.round][who] = opinion;
                return _score(who, _ballotOf(opinion));
            }
            vm.prank(_voter(who));
            tasks.standDown(id, state.round);
        }
    }

    function anyoneActs() external {
        ITaskTypes.TaskState memory state = tasks.state(id);
        ITaskTypes.RoundState memory round = _roundState();
        if (state.phase == ITaskTypes.Phase.Ended) {
            _begin();
        } else if (state.phase == ITaskTypes.Phase.Forming) {
            _form();
        } else if (state.phase == ITaskTypes.Phase.Drawing) {
            _draw();
        } else if (state.phase == ITaskTypes.Phase.Revealing && round.seated == round.revealed) {
            tasks.settle(id, state.round);
        } else if (state.phase == ITaskTypes.Phase.Disclosing && round.summedCohorts == round.viableCohorts) {
            tasks.settle(id, state.round);
        } else if (state.phase == ITaskTypes.Phase.Settling) {
            tasks.settle(id, state.round);
        }
    }

    /// @dev In most rounds all nodes act honestly.
    function everybodyActs(int64 opinion) external {
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            if (tasks.state(id).phase == ITaskTypes.Phase.Committing) hospitalActs(i);
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            voterActs(i, true, opinion);
        }
    }

    function deadlinePasses(uint256 patience) external {
        if (tasks.state(id).deadline == 0 || patience % 12 > 0) return;
        _pass();
        vm.prank(STRANGER);
        tasks.tick(id);
    }

    /// @dev A second account's claim to a voter's key, by who knows the secret; and tasks that would last for years.
    function strangerTries(uint256 choice) external {
        if (choice % 2 == 0) {
            uint256 secret = _secret(choice / 2 % VOTERS);
            bytes memory key = Signer.publicKey(secret);
            bytes memory proof = _possession(STRANGER, secret, key);
            vm.expectRevert(abi.encodeWithSelector(IStaking.VoterKeyTaken.selector, STRANGER));
            vm.prank(STRANGER);
            return staking.registerVoterKey(key, proof);
        }
        ITaskTypes.TaskParams memory params = _params();
        uint32 window = type(uint32).max - uint32(choice % 1 days);
        if (choice / 2 % 5 == 0) params.joinWindow = window;
        else if (choice / 2 % 5 == 1) params.commitWindow = window;
        else if (choice / 2 % 5 == 2) params.uploadWindow = window;
        else if (choice / 2 % 5 == 3) params.publishWindow = window;
        else params.revealWindow = window;
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.ParamsInvalid.selector, "duration"));
        vm.prank(STRANGER);
        tasks.propose(params);
    }

    function strangerClaims() external {
        if (tasks.claimable(STRANGER) == 0) return;
        vm.prank(STRANGER);
        tasks.claim();
    }

    // Invariants.

    function checkConserved() external view {
        _assertConserved();
    }

    /// @dev A task ends even if only strangers tick and deliver the beacon's values. The bound is the
    ///      deadlines of all rounds and two waits for the beacon in each. Every other task's beacon is dead by then.
    function checkEnds() external {
        uint256 most = 8 * (uint256(tasks.params(id).rounds) + 1);
        for (uint256 steps = 0; tasks.state(id).phase != ITaskTypes.Phase.Ended; ++steps) {
            vm.assertLe(steps, most);
            ITaskTypes.Phase phase = tasks.state(id).phase;
            bool isDead = id % 2 == 0 && tasks.state(id).deadline != 0;
            if (phase == ITaskTypes.Phase.Forming && !isDead) {
                _form();
            } else if (phase == ITaskTypes.Phase.Drawing && !isDead) {
                _draw();
            } else {
                if (phase != ITaskTypes.Phase.Settling) _pass();
                tasks.tick(id);
            }
        }
        _assertConserved();
        _assertExplained();
    }

    /// @dev Proposes the next task, with the nodes that can still pay the bond. The last task's bonds are released
    ///      first.
    function _begin() private {
        ITaskTypes.TaskParams memory params = _params();
        if (token.balanceOf(OPERATOR) < params.pool) return;
        if (tasks.taskCount() > 0) {
            _assertExplained();
            _release(AGGREGATOR, IStaking.Role.Aggregator);
            for (uint256 i = 0; i < HOSPITALS; ++i) {
                _release(_hospital(i), IStaking.Role.Hospital);
            }
            for (uint256 i = 0; i < VOTERS; ++i) {
                _release(_voter(i), IStaking.Role.Voter);
            }
        }
        if (tasks.taskCount() % 3 > 0) params = _decoyParams();
        (params.digests, params.withheldSlashBps) = (tasks.taskCount() % 2 == 1, 300);
        if (tasks.taskCount() % 4 < 2) {
            (params.masked, params.cohorts, params.minCohortSize, params.minHospitals) = (true, 1, 3, 3);
        }
        params.tickBounty = 0.8e18;
        params.aggregatorBond += 50e18; // holds for a larger pool, too
        _propose(params);
        if (tasks.taskCount() % 2 == 0) _fundSome(uint256(keccak256(abi.encode(id))));
        if (_free(AGGREGATOR, IStaking.Role.Aggregator) >= params.aggregatorBond) _joinAggregator();
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            if (_free(_hospital(i), IStaking.Role.Hospital) >= params.hospitalBond) _joinHospital(i);
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            if (_free(_voter(i), IStaking.Role.Voter) >= params.voterBond) _joinVoter(i);
        }
    }

    /// @dev An amount that the aggregator's bond outweighs and that the operator has.
    function _fundSome(uint256 amount) private {
        ITaskTypes.TaskParams memory params = tasks.params(id);
        uint256 fee = uint256(params.aggregatorBond) * params.notPublishedSlashBps / 10_000 / TaskRules.SLASH_PER_FEE;
        uint256 room = fee * 10_000 / params.aggregatorShareBps * params.rounds - params.pool;
        uint256 holds = token.balanceOf(OPERATOR);
        if (holds < room) room = holds;
        if (room > 0) _fund(amount % room + 1);
    }

    function _hasDecoys() private view returns (bool) {
        return _round() > 0 && tasks.params(id).decoys;
    }

    /// @dev Sometimes the aggregator drops or accuses a masked cohort.
    function _publishOrDrop(uint256 cohort, uint256 choice) private {
        uint256 round = _round();
        if (!tasks.params(id).masked || choice % 5 > 1) return _publishCohort(cohort);
        vm.prank(AGGREGATOR);
        if (choice % 5 == 0) tasks.dropCohort(id, round, cohort);
        else tasks.accuseCohort(id, round, cohort, "accusation", "evidence");
    }

    /// @dev Lets the hospitals speak in both steps, then names some of them.
    function _blame(uint256 accused, uint256 choice) private {
        if (!_canName()) return vm.warp(block.timestamp + WINDOW);
        uint256 round = _round();
        uint256 named = accused & choice;
        vm.prank(AGGREGATOR);
        tasks.nameCheaters(id, round, named == 0 ? accused : named);
    }

    function _canName() private view returns (bool) {
        return block.timestamp >= tasks.state(id).deadline - WINDOW;
    }

    function _publishCohort(uint256 cohort) private {
        uint256 round = _round();
        bytes32 hash = _hasDecoys() ? _publishedHash(cohort, 0, _isFlipped(cohort)) : _sumCohort(cohort, 0);
        if (!tasks.params(id).digests) return _publish(cohort, 0, hash);
        bytes32[] memory hashes = new bytes32[](1);
        hashes[0] = hash;
        vm.prank(AGGREGATOR);
        tasks.publishDigests(id, round, cohort, 0, hashes);
    }

    /// @dev Most voters judge. Some give everything the same score, and some say that nothing matches.
    function _ballotOf(int64 opinion) private view returns (int64[] memory) {
        if (opinion % 11 == 1) opinion = Scores.DOES_NOT_MATCH;
        if (!_hasDecoys()) return _scores(opinion);
        return
            opinion % 11 == 2 || opinion == Scores.DOES_NOT_MATCH
                ? _constant(opinion)
                : _ballot(opinion, opinion - 2_000);
    }

    /// @dev Before release, the loss of all bonds is the sum of `explain` over all rounds.
    function _assertExplained() private view {
        ITaskTypes.TaskParams memory params = tasks.params(id);
        _assertBond(AGGREGATOR, IStaking.Role.Aggregator, params.aggregatorBond);
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            _assertBond(_hospital(i), IStaking.Role.Hospital, params.hospitalBond);
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            _assertBond(_voter(i), IStaking.Role.Voter, params.voterBond);
        }
    }

    function _assertBond(address node, IStaking.Role role, uint256 left) private view {
        for (uint256 round = 0; round <= tasks.params(id).rounds; ++round) {
            ITaskTypes.Payout memory payout = tasks.explain(id, round, node);
            if (payout.reason == ITaskTypes.PayoutReason.Stranger) return;
            left -= payout.slash;
        }
        vm.assertEq(_locked(node, role), left);
    }

    function _release(address node, IStaking.Role role) private {
        if (_locked(node, role) > 0) tasks.releaseBond(id, node);
    }

    function _free(address node, IStaking.Role role) private view returns (uint256) {
        return staking.stakeOf(node, role).free;
    }

    function _isOpen() private view returns (bool) {
        return block.timestamp <= tasks.state(id).deadline;
    }

    function _choice(ITaskTypes.RoundState memory round, uint256 left) private view returns (uint256 survivors) {
        for (uint256 cohort = 0; cohort < round.cohorts; ++cohort) {
            if (!round.viableCohorts.has(cohort)) continue;
            uint256 present = tasks.cohortMembers(id, _round(), cohort) & round.committed;
            bool staysViable = (present & ~left).count() >= tasks.params(id).minCohortSize;
            survivors |= staysViable ? present & ~left : present;
        }
    }
}
