// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Bls12381, G1} from "../src/libraries/Bls12381.sol";
import {Tickets} from "../src/libraries/Tickets.sol";
import {Line, Lines, Points, Signer} from "./utils/Crypto.sol";
import {Fixture} from "./utils/Fixture.sol";

/// @notice Attempts to break the guarantees, each with the refusal that must stop it.
contract AttacksTest is Fixture {
    address private constant ATTACKER = address(0x10004); // the last hospital

    // Commitments that depend on others'. The attacker must commit before it sees a point, and then show what it
    // committed to.

    /// @dev With this point the aggregate would be whatever the attacker likes.
    function test_sumCommitments_refusesRogueCommitment() public {
        Line memory wanted = Lines.from("the aggregate that the attacker wants");
        G1 memory rogue = Lines.point(wanted);
        _commitAgainstHonest(_pointHash(0, ATTACKER, 0, Lines.compressed(wanted)));
        for (uint256 i = 0; i < 3; ++i) {
            rogue = Points.plus(rogue, Points.negated(Lines.point(_line(0, i, 0))));
        }
        _showRefused(rogue);
        _show(Lines.point(wanted));
    }

    /// @dev -C cancels an honest C.
    function test_sumCommitments_refusesNegatedCommitment() public {
        _commitAgainstHonest(_pointHash(0, _hospital(0), 0, Lines.compressed(_line(0, 0, 0))));
        _showRefused(Points.negated(Lines.point(_line(0, 0, 0))));
    }

    /// @dev A copy counts an honest update twice. The hash names the hospital that made it, so nobody else can show it.
    function test_sumCommitments_refusesCopiedCommitment() public {
        _commitAgainstHonest(_pointHash(0, _hospital(0), 0, Lines.compressed(_line(0, 0, 0))));
        _showRefused(Lines.point(_line(0, 0, 0)));
        _showRefused(Lines.point(_line(0, 3, 0)));
    }

    /// @dev A copy among those that are no survivors harms nobody.
    function test_sumCommitments_passesOverCopiedCommitmentOfNoSurvivor() public {
        _toStatistics();
        bytes32 copied = _update(0, 0).pointHashes[0];
        _commitHonest();
        _commit(0, ATTACKER, _updateOf(copied));
        _fix(7);
        (ITaskTypes.Commitments memory all, bytes32 hash) = _sum(0, 0, 7, 0);
        all.others[0] = copied;
        tasks.sumCommitments(id, 0, 0, 0, all);
        vm.assertEq(tasks.expectedBlobHash(id, 0, 0, 0), hash);
    }

    /// @dev The attacker commits to a hash that names its victim and another point. If the running hash did not name who
    ///      sent which hash, the aggregator could exchange both, and the victim's point would be the attacker's.
    function test_sumCommitments_refusesPointThatAnotherCommittedToInItsName() public {
        _toStatistics();
        Line memory wanted = Lines.from("what the attacker wants its victim to have sent");
        _commitHonest();
        _commit(0, ATTACKER, _updateOf(_pointHash(0, _hospital(0), 0, Lines.compressed(wanted))));
        _fix(7);
        (ITaskTypes.Commitments memory all,) = _sum(0, 0, 7, 0);
        all.order = hex"03010200";
        all.others[0] = _update(0, 0).pointHashes[0];
        all.points = bytes.concat(_point(1), _point(2), abi.encode(Lines.point(wanted)));
        _mismatch(all);
        all.order = hex"00010203";
        all.points = bytes.concat(abi.encode(Lines.point(wanted)), _point(1), _point(2));
        _mismatch(all);
    }

    function test_sumCommitments_refusesReplayFromAnotherRoundTaskChainBlobOrContract() public {
        _toStatistics();
        _toStatistics();
        bytes memory point = Lines.compressed(_line(0, 3, 0));
        uint256 chain = block.chainid;
        bytes32[5] memory replayed;
        replayed[0] = tasks.pointHash(id, 1, ATTACKER, 0, point);
        replayed[1] = tasks.pointHash(id - 1, 0, ATTACKER, 0, point);
        replayed[2] = tasks.pointHash(id, 0, ATTACKER, 1, point);
        vm.chainId(chain + 1);
        replayed[3] = tasks.pointHash(id, 0, ATTACKER, 0, point);
        vm.chainId(chain);
        vm.etch(address(0xC0DE), address(tasks).code);
        (, bytes memory answer) =
            address(0xC0DE).staticcall(abi.encodeCall(tasks.pointHash, (id, 0, ATTACKER, 0, point)));
        replayed[4] = abi.decode(answer, (bytes32));
        _commitHonest();
        uint256 start = vm.snapshotState();
        for (uint256 i = 0; i < 5; ++i) {
            _commit(0, ATTACKER, _updateOf(replayed[i]));
            _fix(15);
            _showRefused(Lines.point(_line(0, 3, 0)));
            vm.revertToState(start);
        }
        _commit(0, ATTACKER, _updateOf(tasks.pointHash(id, 0, ATTACKER, 0, point)));
        _fix(15);
        _show(Lines.point(_line(0, 3, 0)));
    }

    /// @dev A commitment to a blob of zeros, which has no random scalars.
    function test_sumCommitments_refusesPointAtInfinity() public {
        _commitAgainstHonest(_pointHash(0, ATTACKER, 0, Bls12381.compress(G1(0, 0, 0, 0))));
        ITaskTypes.Commitments memory all = _showing(new bytes(128));
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.CommitmentMalformed.selector, ATTACKER, 0));
        tasks.sumCommitments(id, 0, 0, 0, all);
    }

    function test_sumCommitments_refusesPointOutsideSubgroup() public {
        bytes memory outside = vm.parseJsonBytes(vm.readFile("../../tests/vectors/protocol.json"), ".outside_g1.point");
        _commitAgainstHonest(_pointHash(0, ATTACKER, 0, Bls12381.compress(abi.decode(outside, (G1)))));
        _precompileRefuses(outside);
    }

    /// @dev No point has this x.
    function test_sumCommitments_refusesPointOffTheCurve() public {
        G1 memory off = G1({xHigh: 0, xLow: 1, yHigh: 0, yLow: 1});
        _commitAgainstHonest(_pointHash(0, ATTACKER, 0, Bls12381.compress(off)));
        _precompileRefuses(abi.encode(off));
    }

    /// @dev The hash of a compressed point fixes only y's sign, but the curve has one y of each sign.
    function test_sumCommitments_refusesAnotherYOfTheSameSign() public {
        G1 memory point = Lines.point(_line(0, 3, 0));
        _commitAgainstHonest(_pointHash(0, ATTACKER, 0, Bls12381.compress(point)));
        point.yLow ^= 1;
        _precompileRefuses(abi.encode(point));
    }

    /// @dev The same coordinates plus the field's modulus, and bits that the compressed form has no room for.
    function test_sumCommitments_refusesCoordinatesThatAreNotReduced() public {
        G1 memory point = Lines.point(_line(0, 3, 0));
        _commitAgainstHonest(_pointHash(0, ATTACKER, 0, Bls12381.compress(point)));
        point.xHigh |= 1 << 128;
        _precompileRefuses(abi.encode(point));
        point.xHigh = point.xHigh & type(uint128).max | 1 << 127; // where the compressed form has a flag
        _precompileRefuses(abi.encode(point));
    }

    /// @dev What nobody can show stops no sum: the aggregator leaves it out.
    function test_sumCommitments_goesOnWithoutWhatNobodyCanShow(bytes32 hash) public {
        _toStatistics();
        _commitHonest();
        _commit(0, ATTACKER, _updateOf(hash));
        _fix(7);
        (ITaskTypes.Commitments memory all, bytes32 sum) = _sum(0, 0, 7, 0);
        all.others[0] = hash;
        tasks.sumCommitments(id, 0, 0, 0, all);
        vm.assertEq(tasks.expectedBlobHash(id, 0, 0, 0), sum);
    }

    function _commitHonest() private {
        for (uint256 i = 0; i < 3; ++i) {
            _commit(i);
        }
    }

    /// @dev All four survive.
    function _commitAgainstHonest(bytes32 hash) private {
        _toStatistics();
        vm.assertEq(id, 1); // for which the hash was made
        _commitHonest();
        _commit(0, ATTACKER, _updateOf(hash));
        _fix(15);
    }

    function _point(uint256 hospital) private view returns (bytes memory) {
        return abi.encode(Lines.point(_line(0, hospital, 0)));
    }

    /// @dev The honest points with this one for the attacker.
    function _showing(bytes memory point) private view returns (ITaskTypes.Commitments memory all) {
        (all.order, all.points) = (hex"00010203", bytes.concat(_point(0), _point(1), _point(2), point));
    }

    function _show(G1 memory point) private {
        tasks.sumCommitments(id, 0, 0, 0, _showing(abi.encode(point)));
    }

    function _showRefused(G1 memory point) private {
        _mismatch(_showing(abi.encode(point)));
    }

    function _mismatch(ITaskTypes.Commitments memory all) private {
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.CommitmentMismatch.selector, 0, 0));
        tasks.sumCommitments(id, 0, 0, 0, all);
    }

    function _precompileRefuses(bytes memory point) private {
        ITaskTypes.Commitments memory all = _showing(point);
        vm.expectRevert(abi.encodeWithSelector(Bls12381.PrecompileFailed.selector, 0x0c));
        tasks.sumCommitments(id, 0, 0, 0, all);
    }

    // Published sums.

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
        (, bytes32 withoutLast) = _sum(0, 0, 7, 0);
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
