// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../src/interfaces/IStaking.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Bits} from "../src/libraries/Bits.sol";
import {TaskRules} from "../src/libraries/TaskRules.sol";
import {Fixture} from "./utils/Fixture.sol";

/// @notice Shards are tasks that train one model: each round of one waits for the round before of all.
contract ShardsTest is Fixture {
    using Bits for uint256;

    uint256 private constant SHARDS = 3;
    uint256 private constant EACH = 2; // hospitals of a shard

    function _shardParams() private pure returns (ITaskTypes.TaskParams memory params) {
        params = _params();
        params.shards = uint8(SHARDS);
        params.cohorts = 1;
        params.minCohortSize = uint16(EACH);
        params.maxHospitals = uint16(EACH);
        params.rounds = 2;
    }

    function _node(uint256 shard, uint256 index) private pure returns (address) {
        return address(uint160(0x70001 + shard * EACH + index));
    }

    /// @dev Everybody joins every shard; hospitals join their own.
    function _start() private {
        _propose(_shardParams());
        uint256 first = id;
        for (uint256 shard = 0; shard < SHARDS; ++shard) {
            id = first + shard;
            _joinAggregator();
            for (uint256 i = 0; i < EACH; ++i) {
                _stake(_node(shard, i), IStaking.Role.Hospital);
                _joinAs(_node(shard, i), 100);
            }
            for (uint256 i = 0; i < VOTERS; ++i) {
                _joinVoter(i);
            }
        }
        id = first;
    }

    function _train(uint256 task) private {
        _commitShard(task);
        _publishShard(task);
    }

    function _trainAll(uint256 first) private {
        for (uint256 i = 0; i < SHARDS; ++i) {
            _train(first + i);
        }
    }

    function _publishShard(uint256 task) private {
        id = task;
        if (tasks.state(id).phase == ITaskTypes.Phase.Committing) tasks.tick(id);
        _fix(_roundState().committed);
        _publishAll();
    }

    function _commitShard(uint256 task) private {
        id = task;
        uint256 round = _round();
        for (uint256 i = 0; i < EACH; ++i) {
            address node = tasks.hospitals(task)[i].node;
            ITaskTypes.Update memory update = _updateOf(_hashes(round, node, _lines(round, i)));
            vm.prank(node);
            tasks.commitUpdate(task, round, 0, update);
            _arrive(round, i);
        }
    }

    function _finish(uint256 task) private {
        id = task;
        _draw();
        _scoreAll(2_000);
        tasks.settle(task, _round());
    }

    function _refuseForming(uint256 task, uint256 behind, uint256 round, uint256 wanted) private {
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.ShardBehind.selector, behind, round, wanted));
        tasks.formCohorts(task, "");
    }

    /// @dev The first call requests the beacon's value.
    function _formAfterRequest(uint256 task) private {
        id = task;
        tasks.formCohorts(task, "");
        _assertPhase(ITaskTypes.Phase.Forming);
        _form();
    }

    function test_propose_makesAllShardsAndPaysEachPool() public {
        uint256 before = token.balanceOf(OPERATOR);
        _propose(_shardParams());
        vm.assertEq(tasks.taskCount(), id + SHARDS - 1);
        vm.assertEq(before - token.balanceOf(OPERATOR), SHARDS * _shardParams().pool);
        for (uint256 i = 0; i < SHARDS; ++i) {
            ITaskTypes.TaskState memory state = tasks.state(id + i);
            vm.assertEq(state.shard, i + 1);
            vm.assertEq(state.operator, OPERATOR);
            vm.assertEq(state.poolLeft, _shardParams().pool);
            vm.assertEq(abi.encode(tasks.params(id + i)), abi.encode(_shardParams()));
        }
        _assertConserved();
    }

    function test_propose_ofOneShardIsATaskAlone() public {
        _propose(_params());
        vm.assertEq(tasks.state(id).shard, 0);
        vm.assertEq(tasks.taskCount(), id);
    }

    function test_propose_boundsShards(uint8 shards) public {
        ITaskTypes.TaskParams memory params = _shardParams();
        (params.shards, params.pool) = (shards, 1e18);
        bool isGood = shards > 0 && shards <= TaskRules.MAX_SHARDS;
        if (!isGood) vm.expectRevert(abi.encodeWithSelector(ITaskTypes.ParamsInvalid.selector, "shards"));
        vm.prank(OPERATOR);
        tasks.propose(params);
    }

    function test_propose_takesAllPoolsOrNone() public {
        ITaskTypes.TaskParams memory params = _shardParams();
        params.pool = uint128(token.balanceOf(OPERATOR) / SHARDS + 1);
        params.aggregatorBond = params.pool;
        vm.prank(OPERATOR);
        try tasks.propose(params) {
            vm.assertTrue(false);
        } catch {}
        vm.assertEq(tasks.taskCount(), 0);
    }

    function test_join_aHospitalIsInOneShardOfAModel() public {
        _propose(_shardParams());
        _joinHospital(0);
        id += 2;
        bytes memory key = _transportKey(_hospital(0));
        bytes memory proof = _transportProof(_hospital(0), _hospital(0));
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.AlreadyJoined.selector, id - 2, _hospital(0)));
        vm.prank(_hospital(0));
        tasks.joinAsHospital(id, 100, key, proof, keccak256("encryption key"));
        _propose(_shardParams()); // another model
        _joinHospital(0);
    }

    function test_formCohorts_waitsForTheStatisticsOfAllShards() public {
        _start();
        uint256 first = id;
        _train(first + 1);
        _assertPhase(ITaskTypes.Phase.Forming);
        vm.assertEq(tasks.state(id).deadline, 0);
        _refuseForming(first + 1, first, 0, 1);
        _train(first);
        _refuseForming(first + 1, first + 2, 0, 1);
        _train(first + 2);
        for (uint256 i = 0; i < SHARDS; ++i) {
            _formAfterRequest(first + i);
            _assertPhase(ITaskTypes.Phase.Committing);
        }
    }

    function test_formCohorts_waitsForTheLastRoundOfAllShards() public {
        _start();
        uint256 first = id;
        _trainAll(first);
        _toCommitted(first);
        _publishShard(first);
        _finish(first);
        _assertPhase(ITaskTypes.Phase.Forming);
        _refuseForming(first, first + 1, 1, 2);
        for (uint256 i = 1; i < SHARDS; ++i) {
            _publishShard(first + i);
            _finish(first + i);
        }
        for (uint256 i = 0; i < SHARDS; ++i) {
            id = first + i;
            _form(); // by the value that drew the seats
            _assertPhase(ITaskTypes.Phase.Committing);
            vm.assertEq(_round(), 2);
        }
        _assertRoundsPaid(first);
    }

    /// @dev All hospitals of all shards have committed to round 1.
    function _toCommitted(uint256 first) private {
        for (uint256 i = 0; i < SHARDS; ++i) {
            _formAfterRequest(first + i);
        }
        for (uint256 i = 0; i < SHARDS; ++i) {
            _commitShard(first + i);
        }
    }

    function _refuseUploading(uint256 task, uint256 behind, uint256 round) private {
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.ShardBehind.selector, behind, round, round));
        tasks.tick(task);
    }

    /// @dev Else a hospital of a slower shard could commit to a copy of a published sum.
    function test_uploading_waitsForTheCommitmentsOfAllShards() public {
        _start();
        uint256 first = id;
        _trainAll(first);
        _formAfterRequest(first);
        _commitShard(first);
        _assertPhase(ITaskTypes.Phase.Committing);
        vm.assertEq(tasks.state(first).deadline, 0);
        _refuseUploading(first, first + 1, 1); // not even formed
        ITaskTypes.Update memory update = _updateOf(_hashes(1, _node(0, 0), _lines(1, 0)));
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PhaseOver.selector, first, 0));
        vm.prank(_node(0, 0));
        tasks.commitUpdate(first, 1, 0, update);
        _formAfterRequest(first + 1);
        _formAfterRequest(first + 2);
        _refuseUploading(first, first + 1, 1);
        _commitShard(first + 1);
        _assertPhase(ITaskTypes.Phase.Committing);
        _refuseUploading(first + 1, first + 2, 1);
        vm.warp(tasks.state(first + 2).deadline + 1);
        tasks.tick(first + 2); // nobody commits, and the round is void there
        for (uint256 i = 0; i < 2; ++i) {
            id = first + i;
            tasks.tick(id);
            _assertPhase(ITaskTypes.Phase.Uploading);
            _publishShard(id);
            _finish(id);
        }
    }

    /// @dev The last shard to close needs no tick, and a lone task never waits.
    function test_uploading_beginsWithTheLastShard() public {
        _start();
        uint256 first = id;
        _trainAll(first);
        _toCommitted(first);
        _assertPhase(ITaskTypes.Phase.Uploading);
        for (uint256 i = 0; i < SHARDS - 1; ++i) {
            id = first + i;
            _assertPhase(ITaskTypes.Phase.Committing);
            tasks.tick(id);
            _assertPhase(ITaskTypes.Phase.Uploading);
        }
    }

    function _assertRoundsPaid(uint256 first) private view {
        for (uint256 i = 0; i < SHARDS; ++i) {
            vm.assertEq(uint256(tasks.roundState(first + i, 1).outcome), uint256(ITaskTypes.Outcome.Settled));
            vm.assertGt(_rewards(_node(i, 0), IStaking.Role.Hospital), 0);
        }
    }

    /// @dev The wait is for others, so that no deadline of a dead beacon may end it.
    function test_formCohorts_waitsLongerThanABeaconMayTake() public {
        _start();
        uint256 first = id;
        _train(first);
        vm.warp(block.timestamp + TaskRules.BEACON_WINDOW + 1);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PhaseNotOver.selector, first, 0));
        tasks.tick(first);
        // The others let their statistics round pass, and end with it.
        for (uint256 i = 1; i < SHARDS; ++i) {
            _refuseForming(first, first + i, 0, 1);
            tasks.tick(first + i);
            id = first + i;
            _assertPhase(ITaskTypes.Phase.Ended);
        }
        _formAfterRequest(first);
        _assertPhase(ITaskTypes.Phase.Committing);
        _train(first);
        _finish(first);
        _form();
        _assertPhase(ITaskTypes.Phase.Committing);
    }

    /// @dev A shard without hospitals ends when its joining does; an operator that stops one does not hold up others.
    function test_formCohorts_doesNotWaitForShardsThatEnded() public {
        _propose(_shardParams());
        uint256 first = id;
        _joinAggregator();
        for (uint256 i = 0; i < EACH; ++i) {
            _stake(_node(0, i), IStaking.Role.Hospital);
            _joinAs(_node(0, i), 100);
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            _joinVoter(i);
        }
        _train(first);
        vm.prank(OPERATOR);
        tasks.stop(first + 1);
        _refuseForming(first, first + 2, 0, 1);
        id = first + 2;
        _pass();
        tasks.tick(first + 2);
        _formAfterRequest(first);
        _assertPhase(ITaskTypes.Phase.Committing);
    }
}
