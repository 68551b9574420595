// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../src/interfaces/IStaking.sol";
import {ITaskRegistry} from "../src/interfaces/ITaskRegistry.sol";
import {ITaskRounds} from "../src/interfaces/ITaskRounds.sol";
import {ITaskSettlement} from "../src/interfaces/ITaskSettlement.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Bits} from "../src/libraries/Bits.sol";
import {Signer} from "./utils/Crypto.sol";
import {Fixture} from "./utils/Fixture.sol";

/// @notice A stranger with stake that calls whatever it likes with the worst that it has, while everybody else does
///         their part: the task plays its rounds to the end, and the stranger is no richer.
contract StrangersTest is Fixture {
    using Bits for uint256;

    uint256 private constant SECRET = 4_242;
    uint256 private constant CALLS = 3; // before each step of the others

    uint256 private _entropy;
    bytes private _garbage;
    uint256 private _taken; // calls that were not refused
    bytes32 private _offered; // the first hash of the stranger's last update
    bytes32 private _committed; // the last that was not refused

    /// forge-config: default.fuzz.runs = 96
    function test_stranger_stopsNothingAndGainsNothing(uint256 entropy, bytes calldata garbage) public {
        (_entropy, _garbage) = (entropy, garbage);
        _stake(STRANGER, IStaking.Role.Hospital);
        token.transfer(STRANGER, STAKE);
        vm.startPrank(STRANGER);
        token.approve(address(staking), type(uint256).max);
        token.approve(address(tasks), type(uint256).max);
        staking.register(IStaking.Role.Voter, 0, STAKE / 2);
        vm.stopPrank();
        uint256 before = _worth();
        ITaskTypes.TaskParams memory params = _params();
        (params.maxHospitals, params.maxVoters, params.seats) = (uint16(HOSPITALS + 1), uint16(VOTERS + 1), 4);
        _propose(params);
        _joinAll();
        for (uint256 steps = 0; tasks.state(id).phase != ITaskTypes.Phase.Ended; ++steps) {
            vm.assertLe(steps, 9 * 3);
            _disturb();
            _step();
        }
        for (uint256 round = 0; round <= params.rounds; ++round) {
            vm.assertEq(uint256(tasks.roundState(id, round).outcome), uint256(ITaskTypes.Outcome.Settled));
        }
        _disturb();
        vm.assertLe(_worth(), before);
        vm.assertGt(tasks.explain(id, 1, AGGREGATOR).reward, 0);
        vm.assertEq(tasks.explain(id, 1, _hospital(0)).slash, 0);
        vm.assertEq(tasks.explain(id, 1, AGGREGATOR).slash, 0);
    }

    function _step() private {
        ITaskTypes.Phase phase = tasks.state(id).phase;
        if (phase == ITaskTypes.Phase.Joining) {
            _pass();
            return tasks.tick(id);
        }
        if (phase == ITaskTypes.Phase.Forming) return _form();
        if (phase == ITaskTypes.Phase.Drawing) return _draw();
        if (phase == ITaskTypes.Phase.Settling) return tasks.settle(id, _round());
        if (phase == ITaskTypes.Phase.Committing) _commitAll();
        else if (phase == ITaskTypes.Phase.Uploading) _fixWhole();
        else if (phase == ITaskTypes.Phase.Publishing) _publishRest();
        else if (phase == ITaskTypes.Phase.Scoring) _scoreHonestly();
        else if (phase == ITaskTypes.Phase.Revealing) _revealHonestly();
        if (tasks.state(id).phase != phase) return;
        _pass();
        tasks.tick(id);
    }

    /// @dev All hospitals that committed, of each viable cohort, but not the stranger: it has no upload.
    function _fixWhole() private {
        ITaskTypes.RoundState memory round = _roundState();
        uint256 survivors;
        for (uint256 cohort = 0; cohort < round.cohorts; ++cohort) {
            if (!round.viableCohorts.has(cohort)) continue;
            survivors |= tasks.cohortMembers(id, _round(), cohort) & round.committed;
        }
        _fix(survivors & Bits.below(HOSPITALS));
    }

    /// @dev The stranger may have added up a sum before.
    function _publishRest() private {
        ITaskTypes.RoundState memory round = _roundState();
        for (uint256 cohort = 0; cohort < round.cohorts; ++cohort) {
            if (!round.viableCohorts.has(cohort)) continue;
            (ITaskTypes.Commitments memory points, bytes32 hash) =
                _sum(_round(), cohort, _survivors(_round(), cohort), 0);
            if (points.others.length != 0) points.others[0] = _committed;
            if (!_roundState().summedCohorts.has(cohort)) tasks.sumCommitments(id, _round(), cohort, 0, points);
            _publish(cohort, 0, hash);
        }
    }

    function _scoreHonestly() private {
        for (uint256 i = 0; i < VOTERS; ++i) {
            if (_wins(i)) _score(i, _scores(2_000));
        }
    }

    function _revealHonestly() private {
        for (uint256 i = 0; i < VOTERS; ++i) {
            if (_roundState().seated.has(i)) _reveal(i, _scores(2_000));
        }
        if (_roundState().revealed == _roundState().seated) tasks.settle(id, _round());
    }

    function _disturb() private {
        for (uint256 i = 0; i < CALLS; ++i) {
            (address target, bytes memory data) = _choose(3) == 0 ? _stakingCall() : (address(tasks), _taskCall());
            vm.prank(STRANGER);
            (bool ok,) = target.call(data);
            if (!ok) continue;
            ++_taken;
            if (bytes4(data) != ITaskRounds.commitUpdate.selector) continue;
            _committed = _offered;
            _arrive(_round(), HOSPITALS);
        }
    }

    function _taskCall() private returns (bytes memory) {
        uint256 choice = _choose(16);
        (uint256 task, uint256 round) = (_choose(4) == 0 ? _worst() : id, _choose(4) == 0 ? _worst() : _round());
        if (choice < 3) return _join(task);
        if (choice == 3) return abi.encodeCall(ITaskRegistry.joinAsVoter, (task));
        if (choice == 4) return abi.encodeCall(ITaskRegistry.joinAsAggregator, (task));
        if (choice == 5) return abi.encodeCall(ITaskRegistry.propose, (_worstParams()));
        if (choice == 6) {
            return
                abi.encodeCall(ITaskRounds.commitUpdate, (task, round, _choose(2) == 0 ? _worst() : 0, _worstUpdate()));
        }
        if (choice == 7) return abi.encodeCall(ITaskRounds.revealScores, (task, round, _worstScores(), bytes32(0)));
        if (choice == 8) {
            bytes memory ticket = Signer.sign(SECRET, tasks.ticketMessage(id, _round(), STRANGER), _garbage);
            return abi.encodeCall(ITaskRounds.commitScores, (task, round, Signer.publicKey(SECRET), ticket, 0));
        }
        if (choice == 9) return abi.encodeCall(ITaskRounds.standDown, (task, round));
        if (choice == 10) return abi.encodeCall(ITaskRounds.submitEvidence, (task, round, _choose(3), _garbage));
        if (choice == 11) return abi.encodeCall(ITaskRegistry.resume, (task));
        if (choice == 12) return abi.encodeCall(ITaskSettlement.settle, (task, round));
        if (choice == 13) return abi.encodeCall(ITaskRounds.tick, (task));
        if (choice == 14) return abi.encodeCall(ITaskRegistry.releaseBond, (task, STRANGER));
        return abi.encodeCall(ITaskRounds.fixSurvivors, (task, round, _worst()));
    }

    function _join(uint256 task) private returns (bytes memory) {
        uint256 choice = _choose(5);
        address holder = choice < 2 ? STRANGER : _hospital(_choose(HOSPITALS));
        bytes memory key = choice == 4 ? _garbage : _transportKey(holder);
        bytes memory proof = choice == 3 ? _garbage : _transportProof(holder, choice == 2 ? _hospital(0) : STRANGER);
        bytes32 sealing = _choose(2) == 0 ? bytes32(0) : keccak256("encryption key");
        return abi.encodeCall(ITaskRegistry.joinAsHospital, (task, _worst(), key, proof, sealing));
    }

    function _stakingCall() private returns (address, bytes memory data) {
        uint256 choice = _choose(8);
        IStaking.Role role = IStaking.Role(_choose(3));
        if (choice < 3) {
            uint256 secret = choice == 0 ? _secret(_choose(VOTERS)) : SECRET; // another's, as if it were known
            bytes memory key = choice == 2 ? _garbage : Signer.publicKey(secret);
            data = abi.encodeCall(IStaking.registerVoterKey, (key, _possession(STRANGER, secret, key)));
        } else if (choice == 3) {
            data = abi.encodeCall(IStaking.register, (role, _worst(), _worst()));
        } else if (choice == 4) {
            data = abi.encodeCall(IStaking.delegate, (_hospital(_choose(HOSPITALS)), role, _worst()));
        } else if (choice == 5) {
            data = abi.encodeCall(IStaking.startUnbonding, (STRANGER, role, _worst()));
        } else if (choice == 6) {
            data = abi.encodeCall(IStaking.withdraw, (_choose(3)));
        } else {
            data = abi.encodeCall(IStaking.slash, (_hospital(0), role, _worst()));
        }
        return (address(staking), data);
    }

    function _worstParams() private returns (ITaskTypes.TaskParams memory params) {
        params = _params();
        uint256 choice = _choose(8);
        params.pool = 0;
        if (choice == 0) params.joinWindow = type(uint32).max;
        else if (choice == 1) params.harmfulBelow = type(int64).max;
        else if (choice == 2) params.rounds = type(uint16).max;
        else if (choice == 3) params.pool = type(uint128).max;
        else if (choice == 4) params.maxHospitals = type(uint16).max;
        else if (choice == 5) params.hospitalShareBps = type(uint16).max;
        else if (choice == 6) params.aggregator = STRANGER;
    }

    function _worstUpdate() private returns (ITaskTypes.Update memory update) {
        uint256 choice = _choose(4);
        if (choice == 0) update = _updateOf(new bytes32[](_choose(300)));
        else if (choice == 1) update = _update(_round(), 0); // another's
        else if (choice == 2) update = ITaskTypes.Update(_update(_round(), 0).pointHashes, _garbage, 0);
        else update = _updateOf(_hashes(_round(), STRANGER, _lines(_round(), 9)));
        _offered = update.pointHashes.length == 0 ? bytes32(0) : update.pointHashes[0];
    }

    function _worstScores() private returns (int64[] memory scores) {
        scores = new int64[](_choose(300));
        for (uint256 i = 0; i < scores.length; ++i) {
            scores[i] = i % 2 == 0 ? type(int64).min : type(int64).max;
        }
    }

    function _worst() private returns (uint256) {
        uint256 choice = _choose(5);
        if (choice == 0) return 0;
        if (choice == 1) return type(uint256).max;
        if (choice == 2) return type(uint128).max;
        return choice == 3 ? 1 : STAKE;
    }

    /// @dev All of the stranger's tokens. Its delegations to others are left out, because they share in their gains.
    function _worth() private view returns (uint256 worth) {
        worth = token.balanceOf(STRANGER) + tasks.claimable(STRANGER);
        for (uint256 role = 0; role < 3; ++role) {
            IStaking.Stake memory stake = staking.stakeOf(STRANGER, IStaking.Role(role));
            worth += stake.active + stake.unbonding + _rewards(STRANGER, IStaking.Role(role));
        }
    }

    function _choose(uint256 choices) private returns (uint256) {
        _entropy = uint256(keccak256(abi.encode(_entropy)));
        return _entropy % choices;
    }
}
