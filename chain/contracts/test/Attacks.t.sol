// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskRounds} from "../src/interfaces/ITaskRounds.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Bits} from "../src/libraries/Bits.sol";
import {Bls12381, G1} from "../src/libraries/Bls12381.sol";
import {Kzg} from "../src/libraries/Kzg.sol";
import {Tickets} from "../src/libraries/Tickets.sol";
import {Line, Lines, Points, Signer} from "./utils/Crypto.sol";
import {Fixture} from "./utils/Fixture.sol";

/// @notice Attempts to break the guarantees, each with the refusal that must stop it.
contract AttacksTest is Fixture {
    using Bits for uint256;

    address private constant ATTACKER = address(0x10004); // the last hospital

    function _openingInvalid() private pure returns (bytes memory) {
        return abi.encodeWithSelector(ITaskTypes.OpeningInvalid.selector, ATTACKER);
    }

    /// @dev Without openings this passes, and the aggregate is whatever the attacker likes.
    function test_commitUpdate_refusesRogueCommitment() public {
        _toStatistics();
        G1 memory others = Lines.point(_line(0, 0, 0));
        for (uint256 i = 1; i < 3; ++i) {
            others = Points.plus(others, Lines.point(_line(0, i, 0)));
        }
        Line memory wanted = Lines.from("the aggregate that the attacker wants");
        G1 memory rogue = Points.plus(Lines.point(wanted), Points.negated(others));
        // The attacker can open what it wants, and can copy any opening, but it cannot open the difference.
        (, uint256 z) = tasks.challenge(id, 0, ATTACKER, Bls12381.compress(rogue));
        ITaskTypes.Update memory update = Lines.open(_one(wanted), 0, z);
        update.points = abi.encode(rogue);
        vm.expectRevert(_openingInvalid());
        _commit(0, ATTACKER, update);
    }

    /// @dev One opening stands for all points. What cannot be opened in one of them does not go away by another: the
    ///      ratio that they are combined by depends on them, so there is none to prepare for.
    function test_commitUpdate_refusesRogueCommitmentsThatCancel() public {
        _toTwoBlobs();
        G1 memory honest = Lines.point(_line(0, 0, 0));
        Line[] memory wanted = _lines(0, 3);
        G1 memory first = Points.plus(Lines.point(wanted[0]), honest);
        for (uint256 guess = 1; guess < 4; ++guess) {
            // With the ratio `guess` the honest hospital's part would cancel.
            uint256 inverse = guess == 1 ? 1 : _inverse(guess);
            G1 memory second = Points.plus(Lines.point(wanted[1]), Points.times(Points.negated(honest), inverse));
            bytes memory compressed = bytes.concat(Bls12381.compress(first), Bls12381.compress(second));
            (uint256 ratio, uint256 z) = tasks.challenge(id, 0, ATTACKER, compressed);
            ITaskTypes.Update memory update = Lines.open(wanted, ratio, z);
            update.points = bytes.concat(abi.encode(first), abi.encode(second));
            vm.expectRevert(_openingInvalid());
            _commit(0, ATTACKER, update);
            update = Lines.open(wanted, guess, z);
            update.points = bytes.concat(abi.encode(first), abi.encode(second));
            vm.expectRevert(_openingInvalid());
            _commit(0, ATTACKER, update);
        }
    }

    function test_commitUpdate_refusesChangedOrderOfPoints() public {
        _toTwoBlobs();
        ITaskTypes.Update memory update = _update(0, 3);
        Line[] memory lines = _lines(0, 3);
        update.points = bytes.concat(abi.encode(Lines.point(lines[1])), abi.encode(Lines.point(lines[0])));
        vm.expectRevert(_openingInvalid());
        _commit(0, ATTACKER, update);
    }

    function test_commitUpdate_refusesCopiedCommitment() public {
        _toCommitting();
        ITaskTypes.Update memory copied = _update(1, 0);
        _commit(1, _hospital(0), copied);
        vm.expectRevert(_openingInvalid());
        _commit(1, ATTACKER, copied);
    }

    function test_commitUpdate_refusesReplayFromAnotherRound() public {
        _toStatistics();
        ITaskTypes.Update memory earlier = _update(0, 3);
        _runTraining();
        _form();
        vm.expectRevert(_openingInvalid());
        _commit(1, ATTACKER, earlier);
    }

    function test_commitUpdate_refusesReplayFromAnotherTask() public {
        _toStatistics();
        ITaskTypes.Update memory earlier = _update(0, 3);
        _toStatistics();
        vm.expectRevert(_openingInvalid());
        _commit(0, ATTACKER, earlier);
    }

    function test_commitUpdate_refusesReplayFromAnotherChain() public {
        _toStatistics();
        ITaskTypes.Update memory earlier = _update(0, 3);
        vm.chainId(5);
        vm.expectRevert(_openingInvalid());
        _commit(0, ATTACKER, earlier);
    }

    function test_commitUpdate_refusesAnotherBlobsOpening() public {
        _toTwoBlobs();
        Line[] memory lines = _lines(0, 3);
        (uint256 ratio, uint256 z) = tasks.challenge(id, 0, ATTACKER, Lines.compressed(lines));
        lines[1] = lines[0];
        ITaskTypes.Update memory other = Lines.open(lines, ratio, z);
        other.points = _update(0, 3).points;
        vm.expectRevert(_openingInvalid());
        _commit(0, ATTACKER, other);
    }

    /// @dev -C cancels an honest C. Negating the copied opening along with it does not help: the challenge differs.
    function test_commitUpdate_refusesNegatedCommitment() public {
        _toCommitting();
        Line memory honest = _line(1, 0, 0);
        (, uint256 z) = tasks.challenge(id, 1, _hospital(0), Lines.compressed(_one(honest)));
        Line memory negated = Line(Kzg.MODULUS - honest.constant_, Kzg.MODULUS - honest.slope);
        ITaskTypes.Update memory update = Lines.open(_one(negated), 0, z);
        vm.expectRevert(_openingInvalid());
        _commit(1, ATTACKER, update);
    }

    function test_commitUpdate_refusesPointOutsideSubgroup() public {
        bytes memory outside = vm.parseJsonBytes(vm.readFile("../../tests/vectors/protocol.json"), ".outside_g1.point");
        _toCommitting();
        ITaskTypes.Update memory update = _update(1, 3);
        update.points = outside;
        vm.expectRevert(_openingInvalid());
        _commit(1, ATTACKER, update);
    }

    function test_commitUpdate_refusesPointOutsideSubgroupAmongOthers() public {
        bytes memory outside = vm.parseJsonBytes(vm.readFile("../../tests/vectors/protocol.json"), ".outside_g1.point");
        _toTwoBlobs();
        ITaskTypes.Update memory update = _update(0, 3);
        update.points = bytes.concat(abi.encode(Lines.point(_line(0, 3, 0))), outside);
        vm.expectRevert(abi.encodeWithSelector(Bls12381.PrecompileFailed.selector, 0x0c));
        _commit(0, ATTACKER, update);
    }

    function test_commitUpdate_refusesValueBeyondTheField() public {
        _toCommitting();
        ITaskTypes.Update memory update = _update(1, 3);
        update.value = bytes32(uint256(update.value) + Kzg.MODULUS);
        vm.expectRevert(_openingInvalid());
        _commit(1, ATTACKER, update);
    }

    function test_publish_refusesChangedBlob() public {
        _toPublishing();
        bytes32 hash = _sumCohort(0, 0);
        bytes32 changed = Lines.hash(Lines.from("what the aggregator would rather publish"));
        _publishRefused(1, hash, changed);
    }

    function test_publish_refusesSumWithoutADroppedHospital() public {
        _toStatistics();
        _commitAll();
        _fix(15);
        bytes32 hash = _sumCohort(0, 0);
        (, bytes32 withoutLast) = _sum(0, 7, 0);
        _publishRefused(0, hash, withoutLast);
    }

    function test_publish_refusesAnotherCohortsBlob() public {
        _toPublishing();
        bytes32 own = _sumCohort(0, 0);
        bytes32 other = _sumCohort(1, 0);
        _publishRefused(1, own, other);
    }

    function test_commitScores_refusesForgedTickets() public {
        _toScoring();
        bytes memory key = Signer.publicKey(_secret(0));
        bytes memory message = tasks.ticketMessage(id, 1, _voter(0));
        _ticketRefused(key, Signer.sign(_secret(1), message, Tickets.TICKET_DOMAIN));
        _ticketRefused(key, Signer.sign(_secret(0), message, Tickets.POSSESSION_DOMAIN));
        _ticketRefused(key, abi.encode(Points.negated(abi.decode(_ticket(0), (G1)))));
        _ticketRefused(key, new bytes(128));
        _ticketRefused(key, new bytes(127));
        string memory json = vm.readFile("../../tests/vectors/protocol.json");
        _ticketRefused(key, vm.parseJsonBytes(json, ".outside_g1.point"));
    }

    function test_commitScores_refusesTicketOfAnotherRound() public {
        _toScoring();
        bytes memory earlier = _ticket(0);
        _scoreAll(1);
        tasks.settle(id, 1);
        _form();
        _runTraining();
        _draw();
        bytes memory key = Signer.publicKey(_secret(0));
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.TicketInvalid.selector, _voter(0)));
        vm.prank(_voter(0));
        tasks.commitScores(id, 2, key, earlier, bytes32(0));
    }

    /// @dev A seal names its author, so another's seal opens for nobody else.
    function test_revealScores_refusesCopiedSeal() public {
        _toScoring();
        int64[] memory scores = _scores(1_000);
        _score(0, scores);
        bytes32 copied = tasks.scoreCommitment(id, 1, _voter(0), scores, _salt(0));
        for (uint256 i = 1; i < VOTERS; ++i) {
            bytes memory key = Signer.publicKey(_secret(i));
            bytes memory ticket = _ticket(i);
            vm.prank(_voter(i));
            tasks.commitScores(id, 1, key, ticket, copied);
        }
        _reveal(0, scores);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.RevealMismatch.selector, _voter(1)));
        vm.prank(_voter(1));
        tasks.revealScores(id, 1, scores, _salt(0));
    }

    function _one(Line memory line) private pure returns (Line[] memory lines) {
        lines = new Line[](1);
        lines[0] = line;
    }

    function _toTwoBlobs() private {
        ITaskTypes.TaskParams memory params = _params();
        params.statisticsBlobs = 2;
        _propose(params);
        _joinAll();
    }

    /// @dev Modulo the group order, by Fermat.
    function _inverse(uint256 scalar) private view returns (uint256) {
        bytes memory input = abi.encode(32, 32, 32, scalar, Kzg.MODULUS - 2, Kzg.MODULUS);
        (, bytes memory inverse) = address(0x05).staticcall(input);
        return abi.decode(inverse, (uint256));
    }

    function _publishRefused(uint256 round, bytes32 expected, bytes32 actual) private {
        _setBlob(actual);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.BlobMismatch.selector, 0, 0, expected, actual));
        vm.prank(AGGREGATOR);
        tasks.publish(id, round, 0, 0, 0, 1);
    }

    function _ticketRefused(bytes memory key, bytes memory ticket) private {
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.TicketInvalid.selector, _voter(0)));
        vm.prank(_voter(0));
        tasks.commitScores(id, 1, key, ticket, bytes32(0));
    }
}
