// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskRegistry} from "../src/interfaces/ITaskRegistry.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Fixture} from "./utils/Fixture.sol";

/// @notice An operator may add to its task's pool while others join: rounds then pay more, and what is left comes back.
contract FundingTest is Fixture {
    uint256 private constant POOL = 1_000e18;
    uint256 private constant ROOM = 1_000e18; // what the bond of `_terms` allows on top

    /// @dev A slash takes half of 400 tokens. That is two fees of a pool of 2,000: a tenth of a thousand each.
    function _terms() private pure returns (ITaskTypes.TaskParams memory params) {
        params = _params();
        params.aggregatorBond = 400e18;
    }

    function _refused(bytes memory why, address sender, uint128 amount) private {
        bytes memory before = _everything();
        vm.expectRevert(why);
        vm.prank(sender);
        tasks.fund(id, amount);
        vm.assertEq(_everything(), before);
    }

    function _everything() private view returns (bytes memory) {
        return abi.encode(tasks.params(1), tasks.state(1), token.balanceOf(OPERATOR), token.balanceOf(address(tasks)));
    }

    function test_fund_addsToThePoolAndToNothingElse() public {
        _propose(_terms());
        (ITaskTypes.TaskParams memory params, ITaskTypes.TaskState memory state) = (tasks.params(id), tasks.state(id));
        uint256 held = token.balanceOf(OPERATOR);
        vm.expectEmit(address(tasks));
        emit ITaskTypes.TaskFunded(id, OPERATOR, 300e18, POOL + 300e18);
        _fund(300e18);
        vm.assertEq(token.balanceOf(OPERATOR), held - 300e18);
        vm.assertEq(token.balanceOf(address(tasks)), POOL + 300e18);
        (params.pool, state.poolLeft) = (1_300e18, 1_300e18);
        vm.assertEq(abi.encode(tasks.params(id), tasks.state(id)), abi.encode(params, state));
        _assertConserved();
    }

    /// @dev A round pays an even part of all funds, whenever and in however many parts they came.
    /// forge-config: default.fuzz.runs = 24
    function test_fund_isPaidOutByTheRounds(uint256 first, uint256 second) public {
        first = _bound(first, 1, ROOM - 1);
        second = _bound(second, 1, ROOM - first);
        _propose(_terms());
        _fund(first);
        _joinAggregator();
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            _joinHospital(i);
        }
        _fund(second);
        for (uint256 i = 0; i < VOTERS; ++i) {
            _joinVoter(i);
        }
        uint256 pool = POOL + first + second;
        _runTraining();
        _runRound(2_000);
        vm.assertEq(_earned(AGGREGATOR), pool / 2 / 10);
        vm.assertLe(pool / 2 - 10, pool - tasks.state(id).poolLeft); // all but what divisions leave
        vm.assertLe(pool / 2, tasks.state(id).poolLeft);
        _runRound(2_000);
        _assertPhase(ITaskTypes.Phase.Ended);
        vm.assertEq(_earned(AGGREGATOR), 2 * (pool / 2 / 10));
        vm.assertLe(tasks.claimable(OPERATOR), 20);
        _assertConserved();
    }

    function test_fund_comesBackWhereNobodyJoins() public {
        uint256 before = token.balanceOf(OPERATOR);
        _propose(_terms());
        _fund(ROOM);
        _pass();
        tasks.tick(id);
        vm.assertEq(tasks.claimable(OPERATOR), POOL + ROOM);
        vm.prank(OPERATOR);
        tasks.claim();
        vm.assertEq(token.balanceOf(OPERATOR), before);
        _assertConserved();
    }

    /// @dev The pool of one task is no other's.
    function test_fund_isOfOneTask() public {
        _propose(_terms());
        _propose(_terms());
        _fund(5e18);
        vm.assertEq(tasks.params(1).pool, POOL);
        vm.assertEq(tasks.state(1).poolLeft, POOL);
        vm.assertEq(tasks.params(2).pool, POOL + 5e18);
        _assertConserved();
    }

    function test_fund_isTheOperatorsAlone(address other) public {
        vm.assume(other != OPERATOR);
        _propose(_terms());
        _refused(abi.encodeWithSelector(ITaskTypes.NotOperator.selector, other), other, 1);
    }

    function test_fund_refusesNothingAndUnknownTasks() public {
        _propose(_terms());
        _refused(abi.encodeWithSelector(ITaskTypes.AmountIsZero.selector), OPERATOR, 0);
        id = 2;
        _refused(abi.encodeWithSelector(ITaskTypes.TaskUnknown.selector, 2), OPERATOR, 1);
    }

    /// @dev Up to the last unit that leaves a fee of 100 tokens.
    function test_fund_stopsWhereTheBondNoLongerOutweighsTheFee() public {
        _propose(_terms());
        uint256 most = ROOM + 2 * 10 - 1; // fees are tenths of halves, rounded down
        bytes memory why = abi.encodeWithSelector(ITaskTypes.ParamsInvalid.selector, "aggregatorBond");
        _refused(why, OPERATOR, uint128(most + 1));
        _fund(most);
        _refused(why, OPERATOR, 1);
        vm.assertEq(tasks.params(id).pool, POOL + most);
    }

    /// @dev `propose` and `fund` accept the same terms.
    function test_fund_allowsWhatAProposalMay(uint256 pool, uint256 bond, uint256 share) public {
        ITaskTypes.TaskParams memory params = _params();
        params.aggregatorShareBps = uint16(_bound(share, 0, 10_000));
        (params.hospitalShareBps, params.voterShareBps) = (10_000 - params.aggregatorShareBps, 0);
        params.aggregatorBond = uint128(_bound(bond, 1, 1_000e18));
        params.pool = 0;
        _propose(params);
        params.pool = uint128(_bound(pool, 1, 4_000e18));
        vm.prank(OPERATOR);
        (bool isProposed, bytes memory answer) = address(tasks).call(abi.encodeCall(ITaskRegistry.propose, (params)));
        vm.prank(OPERATOR);
        (bool isFunded, bytes memory other) = address(tasks).call(abi.encodeCall(ITaskRegistry.fund, (id, params.pool)));
        vm.assertTrue(isProposed == isFunded);
        if (!isProposed) vm.assertEq(answer, other);
        _assertConserved();
    }

    function test_fund_refusesWhatIsNotThere() public {
        _propose(_terms());
        vm.prank(OPERATOR);
        token.approve(address(tasks), 1);
        bytes4 allowance = bytes4(keccak256("ERC20InsufficientAllowance(address,uint256,uint256)"));
        _refused(abi.encodeWithSelector(allowance, address(tasks), 1, 2), OPERATOR, 2);
        vm.startPrank(OPERATOR);
        token.approve(address(tasks), type(uint256).max);
        token.transfer(STRANGER, token.balanceOf(OPERATOR) - 1);
        vm.stopPrank();
        bytes4 balance = bytes4(keccak256("ERC20InsufficientBalance(address,uint256,uint256)"));
        _refused(abi.encodeWithSelector(balance, OPERATOR, 1, 2), OPERATOR, 2);
        _refused(abi.encodeWithSignature("Panic(uint256)", 0x11), OPERATOR, type(uint128).max);
    }

    function test_fund_isForThePhaseOfJoining() public {
        _propose(_terms());
        _joinAll();
        ITaskTypes.Phase[3] memory phases =
            [ITaskTypes.Phase.Committing, ITaskTypes.Phase.Forming, ITaskTypes.Phase.Ended];
        for (uint256 i = 0; i < phases.length; ++i) {
            if (i == 1) _runTraining();
            if (i == 2) {
                _runRound(2_000);
                _runRound(2_000);
            }
            _refused(
                abi.encodeWithSelector(ITaskTypes.WrongPhase.selector, id, phases[i], ITaskTypes.Phase.Joining),
                OPERATOR,
                1
            );
        }
    }
}
