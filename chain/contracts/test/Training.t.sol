// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IBeacon} from "../src/interfaces/IBeacon.sol";
import {ITasks} from "../src/interfaces/ITasks.sol";
import {Bits} from "../src/libraries/Bits.sol";
import {Bls12381} from "../src/libraries/Bls12381.sol";
import {Cohorts} from "../src/libraries/Cohorts.sol";
import {Lines} from "./utils/Crypto.sol";
import {Fixture} from "./utils/Fixture.sol";

contract TrainingTest is Fixture {
    using Bits for uint256;

    function test_formCohorts_dealsBySeed() public {
        _toForming();
        uint256 number = _roundState().beaconRequest;
        _form();
        uint256[] memory expected = Cohorts.deal(15, _seedOf(number), 2);
        for (uint256 i = 0; i < 2; ++i) {
            vm.assertEq(tasks.cohortMembers(id, 1, i), expected[i]);
            vm.assertEq(expected[i].count(), 2);
        }
        vm.assertEq(_roundState().cohortSeed, _seedOf(number));
    }

    function test_formCohorts_refusedBeforeTheBeacon() public {
        _toForming();
        uint256 number = _roundState().beaconRequest;
        vm.expectRevert(abi.encodeWithSelector(IBeacon.SeedNotReady.selector, number));
        tasks.formCohorts(id, _header(number));
    }

    function test_formCohorts_makesOneCohortOfThree() public {
        _toForming();
        _form();
        for (uint256 i = 0; i < 3; ++i) {
            _commit(i);
        }
        _pass();
        tasks.tick(id);
        _pass();
        tasks.tick(id);
        _form();
        vm.assertEq(_roundState().cohorts, 1);
        vm.assertEq(tasks.cohortMembers(id, 2, 0), 7);
    }

    function test_commitUpdate_emitsPointsAndEndsPhaseWithTheLast() public {
        _toCommitting();
        for (uint256 i = 0; i < 3; ++i) {
            _commit(i);
        }
        ITasks.Commitment[] memory commitments = _commitments(1, 3);
        vm.expectEmit(address(tasks));
        emit ITasks.UpdateCommitted(id, 1, _hospital(3), commitments[0].point);
        vm.prank(_hospital(3));
        tasks.commitUpdate(id, 1, commitments);
        _assertPhase(ITasks.Phase.Uploading);
        vm.assertEq(_roundState().viableCohorts, 3);
    }

    function test_commitUpdate_takesSeveralBlobs() public {
        ITasks.TaskParams memory params = _params();
        params.statisticsBlobs = 3;
        _propose(params);
        _joinAll();
        _runTraining();
        _assertPhase(ITasks.Phase.Forming);
    }

    function test_commitUpdate_acceptsCKzgOpenings() public {
        _toStatistics();
        string memory json = vm.readFile("../../tests/vectors/protocol.json");
        bytes memory points;
        for (uint256 i = 0; i < 3; ++i) {
            string memory key = string.concat(".openings[", vm.toString(i), "]");
            vm.assertEq(vm.parseJsonAddress(json, string.concat(key, ".hospital")), _hospital(i));
            bytes32 hash = vm.parseJsonBytes32(json, string.concat(key, ".versioned_hash"));
            vm.assertEq(tasks.challenge(id, 0, _hospital(i), 0, hash), vm.parseJsonUint(json, string.concat(key, ".z")));
            _commit(0, _hospital(i), _vector(json, key));
            points = bytes.concat(points, vm.parseJsonBytes(json, string.concat(key, ".point")));
        }
        _pass();
        tasks.tick(id);
        _fix(7);
        tasks.sumCommitments(id, 0, 0, 0, points);
        vm.assertEq(tasks.expectedBlobHash(id, 0, 0, 0), vm.parseJsonBytes32(json, ".unweighted_sum.versioned_hash"));
    }

    function test_commitUpdate_refusals() public {
        _toCommitting();
        ITasks.Commitment[] memory commitments = _commitments(1, 0);
        vm.expectRevert(abi.encodeWithSelector(ITasks.NotAMember.selector, id, _voter(0)));
        vm.prank(_voter(0));
        tasks.commitUpdate(id, 1, commitments);

        vm.startPrank(_hospital(0));
        vm.expectRevert(abi.encodeWithSelector(ITasks.WrongRound.selector, id, 1, 2));
        tasks.commitUpdate(id, 2, commitments);
        vm.expectRevert(abi.encodeWithSelector(ITasks.BlobCountWrong.selector, 0, 1));
        tasks.commitUpdate(id, 1, new ITasks.Commitment[](0));
        tasks.commitUpdate(id, 1, commitments);
        vm.expectRevert(abi.encodeWithSelector(ITasks.AlreadyCommitted.selector, id, _hospital(0)));
        tasks.commitUpdate(id, 1, commitments);
        _pass();
        vm.expectRevert(abi.encodeWithSelector(ITasks.PhaseOver.selector, id, tasks.state(id).deadline));
        tasks.commitUpdate(id, 1, commitments);
        tasks.tick(id);
        vm.expectRevert(
            abi.encodeWithSelector(ITasks.WrongPhase.selector, id, ITasks.Phase.Ended, ITasks.Phase.Committing)
        );
        tasks.commitUpdate(id, 1, commitments);
        vm.stopPrank();
    }

    function test_commitUpdate_refusesMalformedCommitments() public {
        _toCommitting();
        bytes memory refusal = abi.encodeWithSelector(ITasks.CommitmentMalformed.selector, 0);
        ITasks.Commitment memory commitment = _commitments(1, 0)[0];
        bytes memory point = commitment.point;
        commitment.point = bytes.concat(hex"c0", new bytes(47));
        vm.expectRevert(refusal);
        _commit(1, _hospital(0), commitment);
        commitment.point = new bytes(47);
        vm.expectRevert(refusal);
        _commit(1, _hospital(0), commitment);
        commitment.point = point;
        commitment.proof = new bytes(49);
        vm.expectRevert(refusal);
        _commit(1, _hospital(0), commitment);
    }

    function test_fixSurvivors_dropsCohortBelowItsMinimum() public {
        _toUploading();
        uint256 first = tasks.cohortMembers(id, 1, 0);
        vm.expectEmit(address(tasks));
        emit ITasks.SurvivorsFixed(id, 1, first);
        _fix(first);
        vm.assertEq(_roundState().viableCohorts, 1);
        vm.assertEq(tasks.state(id).activeHospitals, 15);
        _publishAll();
        _assertPhase(ITasks.Phase.Drawing);
    }

    function test_fixSurvivors_marksAbsentWhoIsLeftOutOfACohortThatStays() public {
        _toStatistics();
        _commitAll();
        vm.expectEmit(address(tasks));
        emit ITasks.HospitalAbsent(id, 0, _hospital(2));
        _fix(11);
        vm.assertEq(tasks.state(id).activeHospitals, 11);
        _publishAll();
        _assertPhase(ITasks.Phase.Forming);
    }

    function test_fixSurvivors_voidsWithoutAnyCohort() public {
        _toUploading();
        _fix(0);
        _assertVoid(1, ITasks.VoidReason.TooFewHospitals);
        _assertPhase(ITasks.Phase.Forming);
        _assertConserved();
    }

    function test_fixSurvivors_refusals() public {
        _toCommitting();
        _commit(0);
        _commit(1);
        _commit(2);
        _pass();
        tasks.tick(id);
        vm.expectRevert(abi.encodeWithSelector(ITasks.NotAggregator.selector, STRANGER));
        vm.prank(STRANGER);
        tasks.fixSurvivors(id, 1, 7);
        // Hospital 3 did not commit; and a cohort's survivor alone is too few.
        vm.expectRevert(abi.encodeWithSelector(ITasks.SurvivorsInvalid.selector, 15));
        vm.prank(AGGREGATOR);
        tasks.fixSurvivors(id, 1, 15);
        vm.expectRevert(abi.encodeWithSelector(ITasks.SurvivorsInvalid.selector, 7));
        vm.prank(AGGREGATOR);
        tasks.fixSurvivors(id, 1, 7);
        vm.expectRevert(abi.encodeWithSelector(ITasks.SurvivorsInvalid.selector, 1 << 200));
        vm.prank(AGGREGATOR);
        tasks.fixSurvivors(id, 1, 1 << 200);
        _pass();
        vm.expectRevert(abi.encodeWithSelector(ITasks.PhaseOver.selector, id, tasks.state(id).deadline));
        vm.prank(AGGREGATOR);
        tasks.fixSurvivors(id, 1, 3);
    }

    function test_fixSurvivors_onceOnly() public {
        _toPublishing();
        vm.expectRevert(
            abi.encodeWithSelector(ITasks.WrongPhase.selector, id, ITasks.Phase.Publishing, ITasks.Phase.Uploading)
        );
        vm.prank(AGGREGATOR);
        tasks.fixSurvivors(id, 1, 15);
    }

    function test_lines_openAsPolynomialsDo() public view {
        string memory json = vm.readFile("../../tests/vectors/protocol.json");
        vm.assertEq(abi.encode(Lines.tau()), vm.parseJsonBytes(json, ".tau.point"));
        vm.assertEq(Bls12381.compress(Lines.tau()), vm.parseJsonBytes(json, ".tau.compressed"));
    }

    function _vector(string memory json, string memory key) private pure returns (ITasks.Commitment memory) {
        return ITasks.Commitment({
            point: vm.parseJsonBytes(json, string.concat(key, ".commitment")),
            value: vm.parseJsonBytes32(json, string.concat(key, ".y")),
            proof: vm.parseJsonBytes(json, string.concat(key, ".proof"))
        });
    }
}
