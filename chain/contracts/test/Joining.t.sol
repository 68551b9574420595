// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../src/interfaces/IStaking.sol";
import {ITaskRounds} from "../src/interfaces/ITaskRounds.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Fixture} from "./utils/Fixture.sol";

contract JoiningTest is Fixture {
    function test_propose_takesThePool() public {
        vm.expectEmit(address(tasks));
        emit ITaskTypes.TaskProposed(1, OPERATOR, keccak256("specification"), 1_000e18);
        _propose(_params());
        vm.assertEq(id, 1);
        vm.assertEq(tasks.state(id).poolLeft, 1_000e18);
        vm.assertEq(keccak256(abi.encode(tasks.params(id))), keccak256(abi.encode(_params())));
        _assertConserved();
    }

    function test_propose_refusesEachFieldOutOfRange() public {
        ITaskTypes.TaskParams memory p = _params();
        p.aggregator = address(0);
        _refused(p, "aggregator");
        p = _params();
        p.hospitalBond = 0;
        _refused(p, "hospitalBond");
        p = _params();
        p.voterBond = 0;
        _refused(p, "voterBond");
        p = _params();
        p.aggregatorBond = 0;
        _refused(p, "aggregatorBond");
        p = _params();
        p.rounds = 0;
        _refused(p, "rounds");
        p = _params();
        p.minCohortSize = 0;
        _refused(p, "minCohortSize");
        p = _params();
        p.maxHospitals = 257;
        _refused(p, "maxHospitals");
        p = _params();
        p.minHospitals = 1;
        _refused(p, "minHospitals");
        p = _params();
        p.minHospitals = 5;
        _refused(p, "minHospitals");
        p = _params();
        p.maxVoters = 257;
        _refused(p, "maxVoters");
        p = _params();
        p.minVoters = 4;
        _refused(p, "minVoters");
    }

    function test_propose_refusesEachCountOutOfRange() public {
        ITaskTypes.TaskParams memory p = _params();
        p.cohorts = 0;
        _refused(p, "cohorts");
        p = _params();
        p.cohorts = 3;
        _refused(p, "cohorts");
        p = _params();
        (p.maxHospitals, p.cohorts) = (256, 65);
        _refused(p, "cohorts");
        p = _params();
        p.seats = 0;
        _refused(p, "seats");
        p = _params();
        p.seats = 4;
        _refused(p, "seats");
        p = _params();
        p.minReveals = 0;
        _refused(p, "minReveals");
        p = _params();
        (p.seats, p.minReveals) = (2, 3);
        _refused(p, "minReveals");
        p = _params();
        p.statisticsBlobs = 0;
        _refused(p, "statisticsBlobs");
        p = _params();
        p.updateBlobs = 129;
        _refused(p, "updateBlobs");
        p = _params();
        p.rowsPerWeight = 0;
        _refused(p, "rowsPerWeight");
        p = _params();
        p.maxWeight = 0;
        _refused(p, "maxWeight");
    }

    function test_propose_refusesEachRateAndWindowOutOfRange() public {
        ITaskTypes.TaskParams memory p = _params();
        p.harmfulBelow = 1;
        _refused(p, "harmfulBelow");
        p = _params();
        p.harmfulBelow = -9_999; // a round's noise
        _refused(p, "harmfulBelow");
        p = _params();
        (p.acceptFloor, p.harmfulBelow) = (-20_000, -19_999);
        _refused(p, "harmfulBelow");
        p = _params();
        p.hospitalShareBps = 7_001;
        _refused(p, "shareBps");
        p = _params();
        p.harmfulSlashBps = 10_001;
        _refused(p, "harmfulSlashBps");
        p = _params();
        p.notRevealedSlashBps = 10_001;
        _refused(p, "notRevealedSlashBps");
        p = _params();
        p.notPublishedSlashBps = 5_001; // the bond would not hold two
        _refused(p, "notPublishedSlashBps");
        p = _params();
        p.aggregatorBond = 200e18 - 1; // a slash of less than two rounds' fees of 50 tokens
        _refused(p, "aggregatorBond");
        p = _params();
        p.aggregatorShareBps += 1;
        p.voterShareBps -= 1;
        _refused(p, "aggregatorBond");
        p = _params();
        p.tickBounty = uint128(1_000e18) / 1_200 + 1; // twelve ticks would take more than 1 %
        _refused(p, "tickBounty");
        p = _params();
        p.joinWindow = 0;
        _refused(p, "joinWindow");
        p = _params();
        p.commitWindow = 0;
        _refused(p, "commitWindow");
        p = _params();
        p.uploadWindow = 0;
        _refused(p, "uploadWindow");
        p = _params();
        p.publishWindow = 0;
        _refused(p, "publishWindow");
        p = _params();
        p.scoreWindow = 0;
        _refused(p, "scoreWindow");
        p = _params();
        p.revealWindow = 0;
        _refused(p, "revealWindow");
    }

    function test_joinAsHospital_locksBondAndFixesWeight() public {
        _propose(_params());
        vm.expectEmit(address(tasks));
        emit ITaskTypes.HospitalJoined(id, _hospital(2), 0, 3, _transportKey(_hospital(2)), keccak256("encryption key"));
        _joinHospital(2);
        ITaskTypes.Hospital memory hospital = tasks.hospitals(id)[0];
        vm.assertEq(hospital.node, _hospital(2));
        vm.assertEq(hospital.weight, 3);
        vm.assertEq(_locked(_hospital(2), IStaking.Role.Hospital), 100e18);
    }

    function test_join_refusedTwiceInAnyRole() public {
        _propose(_params());
        _joinHospital(0);
        bytes memory refusal = abi.encodeWithSelector(ITaskTypes.AlreadyJoined.selector, id, _hospital(0));
        vm.startPrank(_hospital(0));
        vm.expectRevert(refusal);
        tasks.joinAsHospital(id, 1, "", "", 0);
        vm.expectRevert(refusal);
        tasks.joinAsVoter(id);
        vm.stopPrank();
    }

    function test_join_refusals() public {
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.TaskUnknown.selector, 1));
        tasks.joinAsVoter(1);
        _propose(_params());
        vm.startPrank(STRANGER);
        vm.expectRevert(ITaskTypes.RowsAreZero.selector);
        tasks.joinAsHospital(id, 0, "", "", 0);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.VoterKeyMissing.selector, STRANGER));
        tasks.joinAsVoter(id);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NotAggregator.selector, STRANGER));
        tasks.joinAsAggregator(id);
        bytes memory key = _transportKey(STRANGER);
        bytes memory proof = _transportProof(STRANGER, STRANGER);
        vm.expectRevert(
            abi.encodeWithSelector(IStaking.StakeInsufficient.selector, STRANGER, IStaking.Role.Hospital, 0, 100e18)
        );
        tasks.joinAsHospital(id, 1, key, proof, 0);
        _pass();
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PhaseOver.selector, id, tasks.state(id).deadline));
        tasks.joinAsHospital(id, 1, "", "", 0);
        vm.stopPrank();
    }

    function test_join_refusedWhenFull() public {
        _propose(_params());
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            _joinHospital(i);
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            _joinVoter(i);
        }
        _register(STRANGER, 7);
        vm.startPrank(STRANGER);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.TaskFull.selector, id));
        tasks.joinAsHospital(id, 1, "", "", 0);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.TaskFull.selector, id));
        tasks.joinAsVoter(id);
        vm.stopPrank();
        _joinAggregator();
        _assertPhase(ITaskTypes.Phase.Committing);
    }

    function test_resume_returnsInTheNextRound() public {
        _toForming();
        _form();
        for (uint256 i = 0; i < 3; ++i) {
            _commit(i);
        }
        _pass();
        tasks.tick(id);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.AlreadyJoined.selector, id, _hospital(0)));
        vm.prank(_hospital(0));
        tasks.resume(id);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NotAMember.selector, id, _voter(0)));
        vm.prank(_voter(0));
        tasks.resume(id);
        vm.prank(_hospital(3));
        tasks.resume(id);
        vm.assertEq(tasks.state(id).activeHospitals, 15);
        _pass();
        tasks.tick(id);
        _form();
        vm.assertEq(_roundState().members, 15);
    }

    /// @dev A hospital that knows the seed of the next cohorts could choose its cohort by taking part or not.
    function test_resume_refusedOnceTheNextSeedIsAskedFor() public {
        ITaskTypes.TaskParams memory params = _params();
        params.cohorts = 1;
        _propose(params);
        _joinAll();
        _runTraining();
        _form();
        for (uint256 i = 0; i < 3; ++i) {
            _commit(i);
        }
        _pass();
        tasks.tick(id); // hospital 3 is absent
        _fix(7);
        _publishAll();
        _assertResumeRefused(ITaskTypes.Phase.Drawing);
        _draw();
        _assertResumeRefused(ITaskTypes.Phase.Scoring);
        _scoreAll(1);
        _assertResumeRefused(ITaskTypes.Phase.Revealing);
        tasks.settle(id, 1);
        _assertResumeRefused(ITaskTypes.Phase.Forming);
        _form();
        vm.assertEq(_roundState().members, 7);
    }

    function _assertResumeRefused(ITaskTypes.Phase phase) private {
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.WrongPhase.selector, id, phase, ITaskTypes.Phase.Committing));
        vm.prank(_hospital(3));
        tasks.resume(id);
    }

    function test_claim_refusedWithNothing() public {
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NothingToClaim.selector, STRANGER));
        vm.prank(STRANGER);
        tasks.claim();
    }

    function test_releaseBond_refusals() public {
        _toStatistics();
        vm.expectRevert(
            abi.encodeWithSelector(
                ITaskTypes.WrongPhase.selector, id, ITaskTypes.Phase.Committing, ITaskTypes.Phase.Ended
            )
        );
        tasks.releaseBond(id, _hospital(0));
        _pass();
        tasks.tick(id);
        tasks.releaseBond(id, _hospital(0));
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NothingToRelease.selector, id, _hospital(0)));
        tasks.releaseBond(id, _hospital(0));
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NothingToRelease.selector, id, STRANGER));
        tasks.releaseBond(id, STRANGER);
    }

    function _refused(ITaskTypes.TaskParams memory params, string memory field) private {
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.ParamsInvalid.selector, field));
        vm.prank(OPERATOR);
        tasks.propose(params);
    }
}
