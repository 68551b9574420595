// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../src/interfaces/IStaking.sol";
import {ITaskRounds} from "../src/interfaces/ITaskRounds.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Bits} from "../src/libraries/Bits.sol";
import {Lines} from "./utils/Crypto.sol";
import {Fixture} from "./utils/Fixture.sol";

contract PublishingTest is Fixture {
    using Bits for uint256;

    function test_sumCommitments_weighsByHospitalAndShowsPoints() public {
        _toPublishing();
        uint256 survivors = _survivors(1, 0);
        (ITaskTypes.Commitments memory all, bytes32 hash) = _sum(1, 0, survivors, 0);
        (bytes memory hospitals, bytes memory points) = _shown(all, survivors);
        vm.assertEq(hospitals, all.order);
        vm.assertEq(points.length, 2 * 48);
        vm.expectEmit(address(tasks));
        emit ITaskTypes.PointsShown(id, 1, 0, 0, hospitals, points);
        vm.expectEmit(address(tasks));
        emit ITaskTypes.CohortSummed(id, 1, 0, 0, hash);
        vm.prank(STRANGER);
        tasks.sumCommitments(id, 1, 0, 0, all);
        vm.assertEq(tasks.expectedBlobHash(id, 1, 0, 0), hash);
        vm.assertEq(_roundState().summedCohorts, 1);
    }

    function test_sumCommitments_agreesWithCKzg() public {
        _toStatistics();
        string memory json = vm.readFile("../../tests/vectors/protocol.json");
        ITaskTypes.Commitments memory all;
        all.order = hex"000102";
        bytes memory compressed;
        for (uint256 i = 0; i < 3; ++i) {
            string memory key = string.concat(".committed[", vm.toString(i), "]");
            bytes memory point = vm.parseJsonBytes(json, string.concat(key, ".commitments"));
            bytes32 pointHash = vm.parseJsonBytes32(json, string.concat(key, ".point_hashes[0]"));
            _commit(0, _hospital(i), _updateOf(pointHash));
            compressed = bytes.concat(compressed, point);
            all.points = bytes.concat(all.points, vm.parseJsonBytes(json, string.concat(key, ".points")));
        }
        _pass();
        tasks.tick(id);
        _fix(7);
        vm.expectEmit(address(tasks));
        emit ITaskTypes.PointsShown(id, 0, 0, 0, all.order, compressed);
        tasks.sumCommitments(id, 0, 0, 0, all);
        vm.assertEq(tasks.expectedBlobHash(id, 0, 0, 0), vm.parseJsonBytes32(json, ".unweighted_sum.versioned_hash"));
    }

    function test_sumCommitments_refusals() public {
        _toPublishing();
        (ITaskTypes.Commitments memory all,) = _sum(1, 0, _survivors(1, 0), 0);
        (ITaskTypes.Commitments memory others,) = _sum(1, 1, _survivors(1, 1), 0);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.CohortUnknown.selector, 2));
        tasks.sumCommitments(id, 1, 2, 0, all);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.CohortUnknown.selector, 1 << 64));
        tasks.sumCommitments(id, 1, 1 << 64, 0, all);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.BlobUnknown.selector, 1, 1));
        tasks.sumCommitments(id, 1, 0, 1, all);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.CommitmentMismatch.selector, 0, 0));
        tasks.sumCommitments(id, 1, 0, 0, others);
        tasks.sumCommitments(id, 1, 0, 0, all);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.AlreadySummed.selector, 0, 0));
        tasks.sumCommitments(id, 1, 0, 0, all);
        _pass();
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PhaseOver.selector, id, tasks.state(id).deadline));
        tasks.sumCommitments(id, 1, 1, 0, others);
    }

    /// @dev The statistics round of four, of two blobs. All committed, hospital 2 the first; it is no survivor.
    function _toShowing() private {
        _propose(_withBlobs(2));
        _joinAll();
        uint256[4] memory order = [uint256(2), 0, 3, 1];
        for (uint256 i = 0; i < 4; ++i) {
            _commit(order[i]);
        }
        _fix(11);
    }

    function _good() private view returns (ITaskTypes.Commitments memory all) {
        (all,) = _sum(0, 0, 11, 0);
    }

    function _mismatch(ITaskTypes.Commitments memory all) private {
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.CommitmentMismatch.selector, 0, 0));
        tasks.sumCommitments(id, 0, 0, 0, all);
    }

    function _lengthRefused(ITaskTypes.Commitments memory all, uint256 given, uint256 wanted) private {
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PointsWrong.selector, given, wanted));
        tasks.sumCommitments(id, 0, 0, 0, all);
    }

    function _point(uint256 hospital, uint256 blob) private view returns (bytes memory) {
        return abi.encode(Lines.point(_line(0, hospital, blob)));
    }

    function test_sumCommitments_refusesAnotherOrder() public {
        _toShowing();
        bytes[8] memory orders = [
            bytes(hex"00020301"),
            hex"02030001",
            hex"02000103",
            hex"00010203",
            hex"02000301",
            hex"02000300",
            hex"02020301",
            hex"020003ff"
        ];
        for (uint256 i = 0; i < orders.length; ++i) {
            ITaskTypes.Commitments memory all = _good();
            bool isChanged = keccak256(all.order) != keccak256(orders[i]);
            vm.assertTrue(isChanged == (i != 4));
            all.order = orders[i];
            if (isChanged) _mismatch(all);
        }
        // Nor if the points follow it.
        ITaskTypes.Commitments memory moved = _good();
        (moved.order, moved.points) = (hex"02030001", bytes.concat(_point(3, 0), _point(0, 0), _point(1, 0)));
        _mismatch(moved);
        tasks.sumCommitments(id, 0, 0, 0, _good());
    }

    function test_sumCommitments_refusesSurvivorAmongTheOthers() public {
        _toShowing();
        ITaskTypes.Commitments memory all = _good();
        all.others[0] = _update(0, 0).pointHashes[0];
        _mismatch(all);
        all.points = bytes.concat(_point(2, 0), _point(3, 0), _point(1, 0));
        _mismatch(all);
        all.order = hex"00020301";
        _mismatch(all);
    }

    function test_sumCommitments_refusesWhatIsNoSurvivor() public {
        _toShowing();
        ITaskTypes.Commitments memory all = _good();
        all.points = bytes.concat(_point(2, 0), _point(3, 0), _point(1, 0));
        _mismatch(all);
        all = _good();
        all.others[0] = 0;
        _mismatch(all);
    }

    function test_sumCommitments_refusesAnotherBlob() public {
        _toShowing();
        ITaskTypes.Commitments memory first = _good();
        (ITaskTypes.Commitments memory second,) = _sum(0, 0, 11, 1);
        _mismatch(second);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.CommitmentMismatch.selector, 0, 1));
        tasks.sumCommitments(id, 0, 0, 1, first);
        tasks.sumCommitments(id, 0, 0, 1, second);
        tasks.sumCommitments(id, 0, 0, 0, first);
        vm.assertEq(_roundState().summedCohorts, 1);
    }

    function test_sumCommitments_refusesWrongLengths() public {
        _toShowing();
        ITaskTypes.Commitments memory all = _good();
        bytes memory order = all.order;
        all.order = hex"020003";
        _lengthRefused(all, 3, 4);
        all.order = bytes.concat(order, hex"00");
        _lengthRefused(all, 5, 4);
        all.order = "";
        _lengthRefused(all, 0, 4);
        all.order = order;
        bytes32[] memory others = all.others;
        all.others = new bytes32[](0);
        _lengthRefused(all, 0, 32);
        all.others = new bytes32[](2);
        _lengthRefused(all, 64, 32);
        all.others = others;
        bytes memory points = all.points;
        all.points = bytes.concat(_point(0, 0), _point(3, 0));
        _lengthRefused(all, 256, 384);
        all.points = new bytes(383);
        _lengthRefused(all, 383, 384);
        all.points = bytes.concat(points, _point(2, 0));
        _lengthRefused(all, 512, 384);
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
        (ITaskTypes.Commitments memory points, bytes32 hash) = _sum(0, 0, 15, 0);
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

/// @notice Seven hospitals in two cohorts of a training round: whoever commits in whichever order, and whoever
///         survives, the sum is theirs.
contract SummingTest is Fixture {
    using Bits for uint256;

    uint256 private constant MEMBERS = 7;
    uint256 private _entropy;

    function setUp() public override {
        super.setUp();
        ITaskTypes.TaskParams memory params = _params();
        (params.maxHospitals, params.minCohortSize, params.minHospitals) = (uint16(MEMBERS), 1, 2);
        _propose(params);
        _joinAggregator();
        for (uint256 i = 0; i < MEMBERS; ++i) {
            if (i >= HOSPITALS) _stake(_hospital(i), IStaking.Role.Hospital);
            _joinHospital(i);
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            _joinVoter(i);
        }
        for (uint256 i = 0; i < MEMBERS; ++i) {
            _commit(i);
        }
        _fix(Bits.below(MEMBERS));
        _publishAll();
        _form();
    }

    /// forge-config: default.fuzz.runs = 64
    function test_sumCommitments_addsUpAnySurvivorsInAnyOrder(uint256 entropy) public {
        _entropy = entropy;
        uint256 survivors = _commitSome();
        if (tasks.state(id).phase == ITaskTypes.Phase.Committing) {
            _pass();
            tasks.tick(id);
        }
        _fix(survivors);
        for (uint256 cohort = 0; cohort < 2; ++cohort) {
            uint256 present = _survivors(1, cohort);
            if (present != 0) _sums(cohort, present);
        }
    }

    function _sums(uint256 cohort, uint256 survivors) private {
        (ITaskTypes.Commitments memory all, bytes32 hash) = _sum(1, cohort, survivors, 0);
        (bytes memory hospitals, bytes memory points) = _shown(all, survivors);
        vm.assertEq(hospitals.length, survivors.count());
        vm.expectEmit(address(tasks));
        emit ITaskTypes.PointsShown(id, 1, cohort, 0, hospitals, points);
        tasks.sumCommitments(id, 1, cohort, 0, all);
        vm.assertEq(tasks.expectedBlobHash(id, 1, cohort, 0), hash);
    }

    /// @dev The survivors are some of those that commit; at least one.
    function _commitSome() private returns (uint256 survivors) {
        uint256 left = Bits.below(MEMBERS);
        while (left != 0) {
            uint256 chosen = _choose(MEMBERS);
            if (!left.has(chosen)) continue;
            left = left.without(chosen);
            uint256 choice = survivors == 0 ? 0 : _choose(6);
            if (choice == 5) continue;
            _commit(chosen);
            if (choice < 4) survivors = survivors.with(chosen);
        }
    }

    function _choose(uint256 choices) private returns (uint256) {
        _entropy = uint256(keccak256(abi.encode(_entropy)));
        return _entropy % choices;
    }
}
