// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../src/interfaces/IStaking.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {DecoyFixture} from "./utils/DecoyFixture.sol";

/// @notice The cost of settling for each further seat of the committee, if all seats are paid.
/// @dev `setUp` makes two tasks ready to settle, which differ in their seats. Each test's calls are transactions of
///      their own, with gas as on a chain (`isolate`), and either task is settled from the same state.
abstract contract SeatGasFixture is DecoyFixture {
    uint256 internal constant FEW = 3;
    uint256 internal constant MOST = 6;

    uint256 internal few;
    uint256 internal many;

    function setUp() public override {
        super.setUp();
        for (uint256 i = VOTERS; i < MOST; ++i) {
            _stake(_voter(i), IStaking.Role.Voter);
            _register(_voter(i), _secret(i));
        }
        _reward();
        few = _toSettling(FEW);
        many = _toSettling(MOST);
    }

    /// @dev Rewards that the nodes earned before.
    function _reward() internal virtual {}

    function _terms() internal virtual returns (ITaskTypes.TaskParams memory) {
        return _params();
    }

    function _settle(uint256 task) internal {
        uint256 round = tasks.state(task).round;
        vm.prank(STRANGER);
        tasks.settle(task, round);
    }

    function _settleGas(uint256 task) internal returns (uint256) {
        _settle(task);
        return vm.lastCallGas().gasTotalUsed;
    }

    function _assertPerSeat(string memory name, uint256 most) internal {
        uint256 start = vm.snapshotState();
        uint256 least = _settleGas(few);
        vm.revertToState(start);
        uint256 each = (_settleGas(many) - least) / (MOST - FEW);
        vm.snapshotValue("seats", name, each);
        vm.assertLe(each, most);
    }

    /// @dev A task whose first round so many voters have revealed; the others stood down.
    function _toSettling(uint256 seats) internal returns (uint256) {
        ITaskTypes.TaskParams memory params = _terms();
        (params.maxVoters, params.seats) = (uint16(MOST), uint16(MOST)); // every ticket wins
        _propose(params);
        _joinAll();
        for (uint256 i = VOTERS; i < MOST; ++i) {
            _joinVoter(i);
        }
        _runTraining();
        _form();
        if (params.decoys) _runDecoyTraining();
        else _runTraining();
        _draw();
        int64[] memory scores = params.decoys ? _ballot(GOOD, BAD) : _scores(1_000);
        for (uint256 i = 0; i < seats; ++i) {
            _score(i, scores);
        }
        for (uint256 i = seats; i < MOST; ++i) {
            vm.prank(_voter(i));
            tasks.standDown(id, 1);
        }
        for (uint256 i = 0; i < seats; ++i) {
            _reveal(i, scores);
        }
        if (params.decoys) {
            tasks.settle(id, 1);
            _openAll();
        }
        return id;
    }

    function _runDecoyTraining() private {
        _commitAll();
        _fix(_roundState().members);
        _setDecoys();
        _publishCohorts();
    }

    function _rewardOnce() internal {
        _settle(_toSettling(MOST));
        vm.warp(block.timestamp + VESTING / 3);
    }
}

contract FirstSeatGasTest is SeatGasFixture {
    /// forge-config: default.isolate = true
    function test_settle_costsLessThan45kASeat() public {
        _assertPerSeat("settle, each further seat, first reward", 45_000);
    }

    /// forge-config: default.isolate = true
    function test_settle_costsTheSameHoweverManyDelegate() public {
        uint256 start = vm.snapshotState();
        uint256 alone = _settleGas(many);
        vm.revertToState(start);
        for (uint256 i = 0; i < 40; ++i) {
            _delegateToAll(address(uint160(0xD0001 + i)));
        }
        vm.assertEq(_settleGas(many), alone);
    }

    function _delegateToAll(address delegator) private {
        token.transfer(delegator, (HOSPITALS + MOST + 1) * 1e18);
        vm.startPrank(delegator);
        token.approve(address(staking), type(uint256).max);
        staking.delegate(AGGREGATOR, IStaking.Role.Aggregator, 1e18);
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            staking.delegate(_hospital(i), IStaking.Role.Hospital, 1e18);
        }
        for (uint256 i = 0; i < MOST; ++i) {
            staking.delegate(_voter(i), IStaking.Role.Voter, 1e18);
        }
        vm.stopPrank();
    }
}

contract SecondSeatGasTest is SeatGasFixture {
    function _reward() internal override {
        _rewardOnce();
    }

    /// forge-config: default.isolate = true
    function test_settle_costsLessThan45kASeat() public {
        _assertPerSeat("settle, each further seat, second reward", 45_000);
    }
}

contract LaterSeatGasTest is SeatGasFixture {
    function _reward() internal override {
        _rewardOnce();
        _rewardOnce();
    }

    /// forge-config: default.isolate = true
    function test_settle_costsLessThan45kASeat() public {
        _assertPerSeat("settle, each further seat, later rewards", 45_000);
    }
}

contract DecoySeatGasTest is SeatGasFixture {
    function _reward() internal override {
        _rewardOnce();
    }

    function _terms() internal pure override returns (ITaskTypes.TaskParams memory) {
        return _decoyParams();
    }

    /// forge-config: default.isolate = true
    function test_settle_costsLessThan45kASeatWithDecoys() public {
        _assertPerSeat("settle, each further seat, later rewards, decoys", 45_000);
    }
}
