// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IBeacon} from "../src/interfaces/IBeacon.sol";
import {ITaskRounds} from "../src/interfaces/ITaskRounds.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
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
        uint256[] memory expected = Cohorts.assign(15, Cohorts.seed(_seedOf(number)), 2);
        for (uint256 i = 0; i < 2; ++i) {
            vm.assertEq(tasks.cohortMembers(id, 1, i), expected[i]);
            vm.assertEq(expected[i].count(), 2);
        }
        vm.assertEq(_roundState().cohortSeed, Cohorts.seed(_seedOf(number)));
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

    function test_commitUpdate_emitsHashesAndEndsPhaseWithTheLast() public {
        _toCommitting();
        for (uint256 i = 0; i < 3; ++i) {
            _commit(i);
        }
        vm.expectEmit(address(tasks));
        emit ITaskTypes.UpdateCommitted(id, 1, _hospital(3), _update(1, 3).pointHashes, 0, Lines.BASE);
        _commit(3);
        _assertPhase(ITaskTypes.Phase.Uploading);
        vm.assertEq(_roundState().viableCohorts, 3);
    }

    function test_commitUpdate_takesSeveralBlobs() public {
        ITaskTypes.TaskParams memory params = _params();
        params.statisticsBlobs = 3;
        _propose(params);
        _joinAll();
        _runTraining();
        _assertPhase(ITaskTypes.Phase.Forming);
    }

    function test_commitUpdate_refusals() public {
        _toCommitting();
        ITaskTypes.Update memory update = _update(1, 0);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NotAMember.selector, id, _voter(0)));
        vm.prank(_voter(0));
        tasks.commitUpdate(id, 1, 0, update);

        uint256 cohort = _cohortOf(1, _hospital(0));
        vm.startPrank(_hospital(0));
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.WrongRound.selector, id, 1, 2));
        tasks.commitUpdate(id, 2, cohort, update);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PointsWrong.selector, 0, 32));
        tasks.commitUpdate(id, 1, cohort, _updateOf(new bytes32[](0)));
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PointsWrong.selector, 64, 32));
        tasks.commitUpdate(id, 1, cohort, _updateOf(new bytes32[](2)));
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NotInCohort.selector, _hospital(0), 1 - cohort));
        tasks.commitUpdate(id, 1, 1 - cohort, update);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NotInCohort.selector, _hospital(0), 2));
        tasks.commitUpdate(id, 1, 2, update);
        tasks.commitUpdate(id, 1, cohort, update);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.AlreadyCommitted.selector, id, _hospital(0)));
        tasks.commitUpdate(id, 1, cohort, update);
        _pass();
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PhaseOver.selector, id, tasks.state(id).deadline));
        tasks.commitUpdate(id, 1, cohort, update);
        tasks.tick(id);
        vm.expectRevert(
            abi.encodeWithSelector(
                ITaskTypes.WrongPhase.selector, id, ITaskTypes.Phase.Ended, ITaskTypes.Phase.Committing
            )
        );
        tasks.commitUpdate(id, 1, cohort, update);
        vm.stopPrank();
    }

    function test_pointHash_isWhatItsDefinitionSays(uint256 round, address hospital, uint256 blob, bytes32 x) public {
        bytes memory point = bytes.concat(bytes16(x), x);
        vm.assertEq(tasks.pointHash(id, round, hospital, blob, point), _pointHash(round, hospital, blob, point));
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PointsWrong.selector, 49, 48));
        tasks.pointHash(id, round, hospital, blob, bytes.concat(point, hex"00"));
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PointsWrong.selector, 0, 48));
        tasks.pointHash(id, round, hospital, blob, "");
    }

    function test_commitmentDigest_isThatOfEip712(uint256 round, bytes32[] calldata hashes, bytes32 shares)
        public
        view
    {
        bytes32 domain = keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                keccak256("Consilium"),
                keccak256("1"),
                block.chainid,
                address(tasks)
            )
        );
        bytes memory words;
        for (uint256 i = 0; i < hashes.length; ++i) {
            words = bytes.concat(words, hashes[i]);
        }
        bytes32 kind = keccak256(
            "UpdateCommitment(uint256 taskId,uint256 round,bytes32[] pointHashes,bytes32 dealing,bytes32 base)"
        );
        bytes32 message = keccak256(abi.encode(kind, id, round, keccak256(words), shares, Lines.BASE));
        bytes32 expected = keccak256(bytes.concat(hex"1901", domain, message));
        vm.assertEq(tasks.commitmentDigest(id, round, hashes, shares, Lines.BASE), expected);
    }

    function test_formCohorts_followsTheLastSeats() public {
        _toScoring();
        bytes32 value = _roundState().seatSeed;
        _scoreAll(1);
        tasks.settle(id, 1);
        vm.assertEq(_roundState().beaconRequest, 0);
        // Nothing to wait for, so nothing to ask anew either.
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PhaseNotOver.selector, id, 0));
        tasks.tick(id);
        tasks.formCohorts(id, "");
        vm.assertEq(_roundState().cohortSeed, Cohorts.seed(value));
    }

    function test_fixSurvivors_dropsCohortBelowItsMinimum() public {
        _toUploading();
        uint256 first = tasks.cohortMembers(id, 1, 0);
        vm.expectEmit(address(tasks));
        emit ITaskTypes.SurvivorsFixed(id, 1, first);
        _fix(first);
        vm.assertEq(_roundState().viableCohorts, 1);
        vm.assertEq(tasks.state(id).activeHospitals, 15);
        _publishAll();
        _assertPhase(ITaskTypes.Phase.Drawing);
    }

    function test_fixSurvivors_marksAbsentWhoIsLeftOutOfACohortThatStays() public {
        _toStatistics();
        _commitAll();
        vm.expectEmit(address(tasks));
        emit ITaskTypes.HospitalAbsent(id, 0, _hospital(2));
        _fix(11);
        vm.assertEq(tasks.state(id).activeHospitals, 11);
        _publishAll();
        _assertPhase(ITaskTypes.Phase.Settling); // what it lost is worked off by itself, not in the publication
        tasks.settle(id, 0);
        _assertPhase(ITaskTypes.Phase.Forming);
    }

    function test_fixSurvivors_voidsWithoutAnyCohort() public {
        _toUploading();
        _fix(0);
        _assertVoid(1, ITaskTypes.VoidReason.TooFewHospitals);
        _assertPhase(ITaskTypes.Phase.Forming);
        _assertConserved();
    }

    function test_fixSurvivors_refusals() public {
        _toCommitting();
        _commit(0);
        _commit(1);
        _commit(2);
        _pass();
        tasks.tick(id);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NotAggregator.selector, STRANGER));
        vm.prank(STRANGER);
        tasks.fixSurvivors(id, 1, 7);
        // Hospital 3 did not commit; and a cohort's survivor alone is too few.
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.SurvivorsInvalid.selector, 15));
        vm.prank(AGGREGATOR);
        tasks.fixSurvivors(id, 1, 15);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.SurvivorsInvalid.selector, 7));
        vm.prank(AGGREGATOR);
        tasks.fixSurvivors(id, 1, 7);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.SurvivorsInvalid.selector, 1 << 200));
        vm.prank(AGGREGATOR);
        tasks.fixSurvivors(id, 1, 1 << 200);
        _pass();
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PhaseOver.selector, id, tasks.state(id).deadline));
        vm.prank(AGGREGATOR);
        tasks.fixSurvivors(id, 1, 3);
    }

    function test_fixSurvivors_onceOnly() public {
        _toPublishing();
        vm.expectRevert(
            abi.encodeWithSelector(
                ITaskTypes.WrongPhase.selector, id, ITaskTypes.Phase.Publishing, ITaskTypes.Phase.Uploading
            )
        );
        vm.prank(AGGREGATOR);
        tasks.fixSurvivors(id, 1, 15);
    }

    function test_lines_commitAsPolynomialsDo() public view {
        string memory json = vm.readFile("../../tests/vectors/protocol.json");
        vm.assertEq(abi.encode(Lines.tau()), vm.parseJsonBytes(json, ".tau.point"));
        vm.assertEq(Bls12381.compress(Lines.tau()), vm.parseJsonBytes(json, ".tau.compressed"));
    }
}
