// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskRounds} from "../src/interfaces/ITaskRounds.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Tickets} from "../src/libraries/Tickets.sol";
import {Signer} from "./utils/Crypto.sol";
import {Fixture} from "./utils/Fixture.sol";

contract JudgingTest is Fixture {
    bytes32 private constant SEALED = keccak256("sealed");

    function test_drawSeats_weighsActiveBonds() public {
        _toDrawing();
        uint256 number = _roundState().beaconRequest;
        _draw();
        vm.assertEq(_roundState().seatSeed, _seedOf(number));
        vm.assertEq(_roundState().seatWeight, 150e18);
        bytes memory message = abi.encode(block.chainid, address(tasks), id, 1, _seedOf(number), _voter(0));
        vm.assertEq(tasks.ticketMessage(id, 1, _voter(0)), message);
    }

    function test_commitScores_refusals() public {
        _toScoring();
        bytes memory key = Signer.publicKey(_secret(0));
        bytes memory ticket = _ticket(0);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NotAMember.selector, id, _hospital(0)));
        vm.prank(_hospital(0));
        tasks.commitScores(id, 1, key, ticket, SEALED);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.VoterKeyMismatch.selector, _voter(1)));
        vm.prank(_voter(1));
        tasks.commitScores(id, 1, key, ticket, SEALED);

        vm.startPrank(_voter(0));
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.WrongRound.selector, id, 1, 0));
        tasks.commitScores(id, 0, key, ticket, SEALED);
        tasks.commitScores(id, 1, key, ticket, SEALED);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.AlreadyActed.selector, id, _voter(0)));
        tasks.commitScores(id, 1, key, ticket, SEALED);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.AlreadyActed.selector, id, _voter(0)));
        tasks.standDown(id, 1);
        _pass();
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PhaseOver.selector, id, tasks.state(id).deadline));
        tasks.standDown(id, 1);
        vm.stopPrank();
    }

    function test_commitScores_refusesKeyRegisteredAfterJoining() public {
        _toScoring();
        _register(_voter(0), 4242);
        bytes memory key = Signer.publicKey(4242);
        bytes memory ticket = Signer.sign(4242, tasks.ticketMessage(id, 1, _voter(0)), Tickets.TICKET_DOMAIN);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.VoterKeyMismatch.selector, _voter(0)));
        vm.prank(_voter(0));
        tasks.commitScores(id, 1, key, ticket, SEALED);
    }

    function test_commitScores_seatsWhoDrawsBelowTheThreshold() public {
        ITaskTypes.TaskParams memory params = _params();
        (params.seats, params.minReveals) = (1, 1);
        _propose(params);
        _joinAll();
        _runTraining();
        _form();
        _runTraining();
        _draw();
        uint256 threshold = Tickets.threshold(1, 50e18, 150e18);
        uint256 seated;
        for (uint256 i = 0; i < VOTERS; ++i) {
            uint256 draw = uint256(keccak256(_ticket(i)));
            if (draw < threshold) {
                ++seated;
                _score(i, _scores(1));
            } else {
                bytes memory key = Signer.publicKey(_secret(i));
                bytes memory ticket = _ticket(i);
                vm.startPrank(_voter(i));
                vm.expectRevert(abi.encodeWithSelector(ITaskTypes.SeatNotWon.selector, _voter(i), draw, threshold));
                tasks.commitScores(id, 1, key, ticket, SEALED);
                tasks.standDown(id, 1);
                vm.stopPrank();
            }
        }
        if (seated > 0) _assertPhase(ITaskTypes.Phase.Revealing);
        else _assertVoid(1, ITaskTypes.VoidReason.TooFewScores);
    }

    function test_standDown_endsScoring() public {
        _toScoring();
        _score(0, _scores(1));
        _score(1, _scores(1));
        vm.prank(_voter(2));
        tasks.standDown(id, 1);
        _assertPhase(ITaskTypes.Phase.Revealing);
        vm.assertEq(_roundState().stoodDown, 4);
    }

    function test_standDown_voidsRoundThatNobodyJudges() public {
        _toScoring();
        for (uint256 i = 0; i < VOTERS; ++i) {
            vm.prank(_voter(i));
            tasks.standDown(id, 1);
        }
        _assertVoid(1, ITaskTypes.VoidReason.TooFewScores);
        _assertPhase(ITaskTypes.Phase.Forming);
        _assertConserved();
    }

    function test_revealScores_refusals() public {
        _toScoring();
        _score(0, _scores(1));
        _score(1, _scores(1));
        vm.prank(_voter(2));
        tasks.standDown(id, 1);
        int64[] memory scores = _scores(1);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NotSeated.selector, id, _voter(2)));
        vm.prank(_voter(2));
        tasks.revealScores(id, 1, scores, _salt(2));

        vm.startPrank(_voter(0));
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.ScoreCountWrong.selector, 1, 2));
        tasks.revealScores(id, 1, new int64[](1), _salt(0));
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.RevealMismatch.selector, _voter(0)));
        tasks.revealScores(id, 1, scores, _salt(1));
        int64[] memory others = _scores(2);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.RevealMismatch.selector, _voter(0)));
        tasks.revealScores(id, 1, others, _salt(0));
        tasks.revealScores(id, 1, scores, _salt(0));
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.AlreadyActed.selector, id, _voter(0)));
        tasks.revealScores(id, 1, scores, _salt(0));
        vm.stopPrank();

        _pass();
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PhaseOver.selector, id, tasks.state(id).deadline));
        vm.prank(_voter(1));
        tasks.revealScores(id, 1, scores, _salt(1));
    }
}
