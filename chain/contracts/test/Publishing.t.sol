// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskRounds} from "../src/interfaces/ITaskRounds.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Bits} from "../src/libraries/Bits.sol";
import {Bls12381} from "../src/libraries/Bls12381.sol";
import {Line, Lines, Points} from "./utils/Crypto.sol";
import {Fixture} from "./utils/Fixture.sol";

contract PublishingTest is Fixture {
    using Bits for uint256;

    function test_sumCommitments_weighsByHospital() public {
        _toPublishing();
        (bytes memory points, bytes32 hash) = _sum(1, _survivors(1, 0), 0);
        vm.expectEmit(address(tasks));
        emit ITaskTypes.CohortSummed(id, 1, 0, 0, hash);
        vm.prank(STRANGER);
        tasks.sumCommitments(id, 1, 0, 0, points);
        vm.assertEq(tasks.expectedBlobHash(id, 1, 0, 0), hash);
        vm.assertEq(_roundState().summedCohorts, 1);
    }

    function test_sumCommitments_refusals() public {
        _toPublishing();
        (bytes memory points,) = _sum(1, _survivors(1, 0), 0);
        (bytes memory others,) = _sum(1, _survivors(1, 1), 0);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.CohortUnknown.selector, 2));
        tasks.sumCommitments(id, 1, 2, 0, points);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.CohortUnknown.selector, 1 << 64));
        tasks.sumCommitments(id, 1, 1 << 64, 0, points);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.BlobUnknown.selector, 1, 1));
        tasks.sumCommitments(id, 1, 0, 1, points);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PointsWrong.selector, 255, 256));
        tasks.sumCommitments(id, 1, 0, 0, new bytes(255));
        address first = _hospital(_survivors(1, 0).has(0) ? 0 : _survivors(1, 0).has(1) ? 1 : 2);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.CommitmentMismatch.selector, first, 0));
        tasks.sumCommitments(id, 1, 0, 0, others);
        tasks.sumCommitments(id, 1, 0, 0, points);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.AlreadySummed.selector, 0, 0));
        tasks.sumCommitments(id, 1, 0, 0, points);
        _pass();
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PhaseOver.selector, id, tasks.state(id).deadline));
        tasks.sumCommitments(id, 1, 1, 0, others);
    }

    function test_sumCommitments_refusesPointsOffTheCurve() public {
        _toPublishing();
        (bytes memory points,) = _sum(1, _survivors(1, 0), 0);
        // The last byte of a y-coordinate: the compressed point, which has y's sign only, stays the same.
        points[127] ^= 0x01;
        vm.expectRevert(abi.encodeWithSelector(Bls12381.PrecompileFailed.selector, 0x0c));
        tasks.sumCommitments(id, 1, 0, 0, points);
    }

    function test_publish_movesOnWithTheLastCohort() public {
        _toPublishing();
        bytes32 hash = _sumCohort(0, 0);
        vm.expectEmit(address(tasks));
        emit ITaskTypes.CohortPublished(id, 1, 0, 0, hash);
        _publish(0, 0, hash);
        vm.assertEq(_roundState().publishedCohorts, 1);
        _assertPhase(ITaskTypes.Phase.Publishing);
        _publish(1, 0, _sumCohort(1, 0));
        _assertPhase(ITaskTypes.Phase.Drawing);
    }

    function test_publish_takesSeveralBlobsFromOneTransaction() public {
        _propose(_withBlobs(3));
        _joinAll();
        _commitAll();
        _fix(15);
        bytes32[] memory hashes = new bytes32[](4);
        for (uint256 blob = 0; blob < 3; ++blob) {
            hashes[blob + 1] = _sumCohort(0, blob);
        }
        vm.blobhashes(hashes);
        vm.startPrank(AGGREGATOR);
        tasks.publish(id, 0, 0, 2, 3, 1);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.AlreadyPublished.selector, 0, 2));
        tasks.publish(id, 0, 0, 1, 2, 2);
        tasks.publish(id, 0, 0, 0, 1, 2);
        vm.stopPrank();
        _assertPhase(ITaskTypes.Phase.Forming);
    }

    function test_publish_refusals() public {
        _toPublishing();
        vm.startPrank(AGGREGATOR);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NotSummed.selector, 0, 0));
        tasks.publish(id, 1, 0, 0, 0, 1);
        vm.stopPrank();
        bytes32 hash = _sumCohort(0, 0);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NotAggregator.selector, STRANGER));
        vm.prank(STRANGER);
        tasks.publish(id, 1, 0, 0, 0, 1);
        _setBlob(hash);
        vm.startPrank(AGGREGATOR);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.BlobUnknown.selector, 1, 1));
        tasks.publish(id, 1, 0, 1, 0, 1);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.CohortUnknown.selector, 2));
        tasks.publish(id, 1, 2, 0, 0, 1);
        // No such blob in the transaction.
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.BlobMismatch.selector, 0, 0, hash, bytes32(0)));
        tasks.publish(id, 1, 0, 0, 1, 1);
        _pass();
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PhaseOver.selector, id, tasks.state(id).deadline));
        tasks.publish(id, 1, 0, 0, 0, 1);
        vm.stopPrank();
    }

    function test_multicall_fixesSumsAndPublishesInOneTransaction() public {
        _toStatistics();
        _commitAll();
        (bytes memory points, bytes32 hash) = _sum(0, 15, 0);
        bytes[] memory calls = new bytes[](3);
        calls[0] = abi.encodeCall(ITaskRounds.fixSurvivors, (id, 0, 15));
        calls[1] = abi.encodeCall(ITaskRounds.sumCommitments, (id, 0, 0, 0, points));
        calls[2] = abi.encodeCall(ITaskRounds.publish, (id, 0, 0, 0, 0, 1));
        _setBlob(hash);
        vm.prank(AGGREGATOR);
        tasks.multicall(calls);
        _assertPhase(ITaskTypes.Phase.Forming);
    }

    function _withBlobs(uint16 blobs) private pure returns (ITaskTypes.TaskParams memory params) {
        params = _params();
        params.statisticsBlobs = blobs;
    }
}
