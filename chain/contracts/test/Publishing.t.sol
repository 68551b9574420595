// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITasks} from "../src/interfaces/ITasks.sol";
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
        emit ITasks.CohortSummed(id, 1, 0, 0, hash);
        vm.prank(STRANGER);
        tasks.sumCommitments(id, 1, 0, 0, points);
        vm.assertEq(tasks.expectedBlobHash(id, 1, 0, 0), hash);
        vm.assertEq(_roundState().summedCohorts, 1);
    }

    function test_sumCommitments_refusals() public {
        _toPublishing();
        (bytes memory points,) = _sum(1, _survivors(1, 0), 0);
        (bytes memory others,) = _sum(1, _survivors(1, 1), 0);
        vm.expectRevert(abi.encodeWithSelector(ITasks.CohortUnknown.selector, 2));
        tasks.sumCommitments(id, 1, 2, 0, points);
        vm.expectRevert(abi.encodeWithSelector(ITasks.CohortUnknown.selector, 1 << 64));
        tasks.sumCommitments(id, 1, 1 << 64, 0, points);
        vm.expectRevert(abi.encodeWithSelector(ITasks.BlobCountWrong.selector, 2, 1));
        tasks.sumCommitments(id, 1, 0, 1, points);
        vm.expectRevert(abi.encodeWithSelector(ITasks.PointsWrong.selector, 255, 256));
        tasks.sumCommitments(id, 1, 0, 0, new bytes(255));
        address first = _hospital(_survivors(1, 0).has(0) ? 0 : _survivors(1, 0).has(1) ? 1 : 2);
        vm.expectRevert(abi.encodeWithSelector(ITasks.CommitmentMismatch.selector, first, 0));
        tasks.sumCommitments(id, 1, 0, 0, others);
        tasks.sumCommitments(id, 1, 0, 0, points);
        vm.expectRevert(abi.encodeWithSelector(ITasks.AlreadySummed.selector, 0, 0));
        tasks.sumCommitments(id, 1, 0, 0, points);
        _pass();
        vm.expectRevert(abi.encodeWithSelector(ITasks.PhaseOver.selector, id, tasks.state(id).deadline));
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
        emit ITasks.CohortPublished(id, 1, 0, 0, hash);
        _publish(0, 0, hash);
        vm.assertEq(_roundState().publishedCohorts, 1);
        _assertPhase(ITasks.Phase.Publishing);
        _publish(1, 0, _sumCohort(1, 0));
        _assertPhase(ITasks.Phase.Drawing);
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
        vm.expectRevert(abi.encodeWithSelector(ITasks.AlreadyPublished.selector, 0, 2));
        tasks.publish(id, 0, 0, 1, 2, 2);
        tasks.publish(id, 0, 0, 0, 1, 2);
        vm.stopPrank();
        _assertPhase(ITasks.Phase.Forming);
    }

    function test_publish_refusals() public {
        _toPublishing();
        vm.startPrank(AGGREGATOR);
        vm.expectRevert(abi.encodeWithSelector(ITasks.NotSummed.selector, 0, 0));
        tasks.publish(id, 1, 0, 0, 0, 1);
        vm.stopPrank();
        bytes32 hash = _sumCohort(0, 0);
        vm.expectRevert(abi.encodeWithSelector(ITasks.NotAggregator.selector, STRANGER));
        vm.prank(STRANGER);
        tasks.publish(id, 1, 0, 0, 0, 1);
        _setBlob(hash);
        vm.startPrank(AGGREGATOR);
        vm.expectRevert(abi.encodeWithSelector(ITasks.NotSummed.selector, 0, 1));
        tasks.publish(id, 1, 0, 1, 0, 1);
        vm.expectRevert(abi.encodeWithSelector(ITasks.CohortUnknown.selector, 2));
        tasks.publish(id, 1, 2, 0, 0, 1);
        // No such blob in the transaction.
        vm.expectRevert(abi.encodeWithSelector(ITasks.BlobMismatch.selector, 0, 0, hash, bytes32(0)));
        tasks.publish(id, 1, 0, 0, 1, 1);
        _pass();
        vm.expectRevert(abi.encodeWithSelector(ITasks.PhaseOver.selector, id, tasks.state(id).deadline));
        tasks.publish(id, 1, 0, 0, 0, 1);
        vm.stopPrank();
    }

    function test_multicall_fixesSumsAndPublishesInOneTransaction() public {
        _toStatistics();
        _commitAll();
        (bytes memory points, bytes32 hash) = _sum(0, 15, 0);
        bytes[] memory calls = new bytes[](3);
        calls[0] = abi.encodeCall(ITasks.fixSurvivors, (id, 0, 15));
        calls[1] = abi.encodeCall(ITasks.sumCommitments, (id, 0, 0, 0, points));
        calls[2] = abi.encodeCall(ITasks.publish, (id, 0, 0, 0, 0, 1));
        _setBlob(hash);
        vm.prank(AGGREGATOR);
        tasks.multicall(calls);
        _assertPhase(ITasks.Phase.Forming);
    }

    function _withBlobs(uint16 blobs) private pure returns (ITasks.TaskParams memory params) {
        params = _params();
        params.statisticsBlobs = blobs;
    }
}
