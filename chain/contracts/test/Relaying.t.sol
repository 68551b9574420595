// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Bls12381, G1} from "../src/libraries/Bls12381.sol";
import {Kzg} from "../src/libraries/Kzg.sol";
import {Claim, Openings} from "../src/libraries/Openings.sol";
import {Line, Lines, Points} from "./utils/Crypto.sol";
import {RelayFixture} from "./utils/RelayFixture.sol";

contract Weights {
    function ratio(ITaskTypes.SignedUpdate[] calldata updates, Claim[] calldata claims)
        external
        pure
        returns (uint256)
    {
        return Openings.weightRatio(updates, claims);
    }
}

contract RelayingTest is RelayFixture {
    uint256 private constant COUNT = 4;
    Weights private immutable _weights = new Weights();

    /// @dev Order of secp256k1.
    uint256 private constant KEY_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141;

    function setUp() public override {
        super.setUp();
        _toRelaying(COUNT, 2);
    }

    function _expect(bytes4 refusal, uint256 hospital) private {
        vm.expectRevert(abi.encodeWithSelector(refusal, _signer(hospital)));
    }

    function test_commitUpdates_takesAllAndEndsPhase() public {
        ITaskTypes.SignedUpdate[] memory updates = _batch(COUNT);
        for (uint256 i = 0; i < COUNT; ++i) {
            vm.expectEmit(address(tasks));
            emit ITaskTypes.UpdateCommitted(id, 0, _signer(i), Lines.compressed(_lines(0, i)), 0, Lines.BASE);
        }
        _relay(updates);
        vm.assertEq(_roundState().committed, 15);
        _assertPhase(ITaskTypes.Phase.Uploading);
        // The stored commitments are those of `commitUpdate`, so the sums can be published.
        _fix(15);
        _publishAll();
        _assertPhase(ITaskTypes.Phase.Forming);
    }

    function test_commitUpdates_takesAnyPartInAnyOrder() public {
        ITaskTypes.SignedUpdate[] memory updates = new ITaskTypes.SignedUpdate[](2);
        (updates[0], updates[1]) = (_signed(3), _signed(1));
        _relay(updates);
        vm.assertEq(_roundState().committed, 10);
        _assertPhase(ITaskTypes.Phase.Committing);
        _relay(_batch(COUNT));
        _assertPhase(ITaskTypes.Phase.Uploading);
    }

    function test_commitUpdates_takesConstantPolynomials() public {
        Line[] memory lines = _lines(0, 0);
        (lines[0].slope, lines[1].slope) = (0, 0);
        _relay(_one(_signed(0, lines)));
        vm.assertEq(_roundState().committed, 1);
    }

    function test_commitUpdates_skipsWhoCommittedMeanwhile() public {
        ITaskTypes.SignedUpdate[] memory updates = _batch(3);
        _commit(0, _signer(1), _open(0, _signer(1), _lines(0, 1)));
        updates[1].vs = 0; // not looked at any more
        _relay(updates);
        vm.assertEq(_roundState().committed, 7);
        // The whole batch again changes nothing.
        _relay(updates);
        vm.assertEq(_roundState().committed, 7);
        _assertPhase(ITaskTypes.Phase.Committing);
        _relay(new ITaskTypes.SignedUpdate[](0));
    }

    function test_commitUpdates_takesTheFirstOfTwoOfOneHospital() public {
        ITaskTypes.SignedUpdate[] memory updates = new ITaskTypes.SignedUpdate[](2);
        Line[] memory second = _lines(0, 1);
        (updates[0], updates[1]) = (_signed(0), _signed(0, second));
        vm.expectEmit(address(tasks));
        emit ITaskTypes.UpdateCommitted(id, 0, _signer(0), Lines.compressed(_lines(0, 0)), 0, Lines.BASE);
        _relay(updates);
        vm.assertEq(_roundState().committed, 1);
        ITaskTypes.Update memory again = _open(0, _signer(0), second);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.AlreadyCommitted.selector, id, _signer(0)));
        _commit(0, _signer(0), again);
    }

    function test_commitUpdates_refusesOutOfPhaseOrRound() public {
        ITaskTypes.SignedUpdate[] memory updates = _batch(COUNT);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.WrongRound.selector, id, 0, 1));
        tasks.commitUpdates(id, 1, updates);
        _pass();
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PhaseOver.selector, id, tasks.state(id).deadline));
        _relay(updates);
    }

    function test_commitUpdates_refusesWhoIsNotAMember() public {
        ITaskTypes.SignedUpdate[] memory updates = _batch(COUNT);
        updates[2] = _signed(COUNT);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NotAMember.selector, id, _signer(COUNT)));
        _relay(updates);
        updates[2].hospital = address(0);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NotAMember.selector, id, address(0)));
        _relay(updates);
    }

    function test_commitUpdates_refusesAnothersSignature() public {
        ITaskTypes.SignedUpdate[] memory updates = _batch(COUNT);
        bytes32 digest = tasks.commitmentDigest(id, 0, Lines.compressed(_lines(0, 2)), 0, Lines.BASE);
        (updates[2].r, updates[2].vs) = _sign(_key(1), digest);
        _expect(ITaskTypes.SignatureInvalid.selector, 2);
        _relay(updates);
    }

    /// @dev The opening is right: without a signature, anybody could commit a hospital to anything.
    function test_commitUpdates_refusesUnsignedUpdateInAnothersName() public {
        ITaskTypes.SignedUpdate memory update = _signed(0, _lines(0, 1));
        (update.r, update.vs) = (0, 0);
        _expect(ITaskTypes.SignatureInvalid.selector, 0);
        _relay(_one(update));
    }

    function test_commitUpdates_refusesSignatureOfAnotherRoundBaseTaskChainOrContract() public {
        bytes memory points = Lines.compressed(_lines(0, 0));
        _refuseDigest(tasks.commitmentDigest(id, 1, points, 0, Lines.BASE));
        _refuseDigest(tasks.commitmentDigest(id, 0, points, 0, bytes32(uint256(Lines.BASE) ^ 1)));
        _refuseDigest(tasks.commitmentDigest(id + 1, 0, points, 0, Lines.BASE));
        uint256 chain = block.chainid;
        vm.chainId(chain + 1);
        bytes32 elsewhere = tasks.commitmentDigest(id, 0, points, 0, Lines.BASE);
        vm.chainId(chain);
        _refuseDigest(elsewhere);
        vm.etch(address(0xC0DE), address(tasks).code);
        (, bytes memory answer) =
            address(0xC0DE).staticcall(abi.encodeCall(tasks.commitmentDigest, (id, 0, points, 0, Lines.BASE)));
        _refuseDigest(abi.decode(answer, (bytes32)));
    }

    function _refuseDigest(bytes32 digest) private {
        ITaskTypes.SignedUpdate memory update = _signed(0);
        (update.r, update.vs) = _sign(_key(0), digest);
        _expect(ITaskTypes.SignatureInvalid.selector, 0);
        _relay(_one(update));
    }

    function test_commitUpdates_refusesMalleableSignature() public {
        ITaskTypes.SignedUpdate memory update = _signed(0);
        bytes32 vs = update.vs;
        uint256 s = uint256(vs) & type(uint256).max >> 1;
        for (uint256 flag = 0; flag < 2; ++flag) {
            update.vs = bytes32((KEY_ORDER - s) & type(uint256).max >> 1 | flag << 255);
            _expect(ITaskTypes.SignatureInvalid.selector, 0);
            _relay(_one(update));
        }
        update.vs = vs ^ bytes32(uint256(1) << 255);
        _expect(ITaskTypes.SignatureInvalid.selector, 0);
        _relay(_one(update));
        update.vs = vs;
        _relay(_one(update));
    }

    function test_commitUpdates_refusesChangedPoints() public {
        ITaskTypes.SignedUpdate[] memory updates = _batch(COUNT);
        updates[2].points = _signed(2, _lines(0, 7)).points;
        _expect(ITaskTypes.SignatureInvalid.selector, 2);
        _relay(updates);
        // The same with the sign of one y: a digest of x alone would let it pass.
        updates = _batch(COUNT);
        Line[] memory lines = _lines(0, 2);
        G1 memory negated = Points.negated(Lines.point(lines[0]));
        updates[2].points = bytes.concat(abi.encode(negated), abi.encode(Lines.point(lines[1])));
        _expect(ITaskTypes.SignatureInvalid.selector, 2);
        _relay(updates);
    }

    function test_commitUpdates_namesWhoseOpeningFails(uint256 seed) public {
        ITaskTypes.SignedUpdate[] memory updates = _batch(COUNT);
        uint256 wrong = _bound(seed, 0, COUNT - 1);
        uint256 offset = _bound(seed >> 8, 1, Kzg.MODULUS - 1);
        uint256 value = uint256(updates[wrong].value);
        updates[wrong].value = bytes32(addmod(value, offset, Kzg.MODULUS));
        _expect(ITaskTypes.OpeningInvalid.selector, wrong);
        _relay(updates);
        updates[wrong].value = bytes32(value);
        updates[wrong].proof = Points.times(Points.generator(), offset);
        _expect(ITaskTypes.OpeningInvalid.selector, wrong);
        _relay(updates);
    }

    /// @dev Errors that cancel in a plain sum.
    function test_commitUpdates_refusesOpeningsThatAreWrongTogether() public {
        ITaskTypes.SignedUpdate[] memory updates = _batch(COUNT);
        (bytes32 first, bytes32 second) = (updates[1].value, updates[2].value);
        updates[1].value = bytes32(addmod(uint256(first), 1, Kzg.MODULUS));
        updates[2].value = bytes32(addmod(uint256(second), Kzg.MODULUS - 1, Kzg.MODULUS));
        _expect(ITaskTypes.OpeningInvalid.selector, 1);
        _relay(updates);
        (updates[1].value, updates[2].value) = (second, first);
        _expect(ITaskTypes.OpeningInvalid.selector, 1);
        _relay(updates);
        (updates[1].value, updates[2].value) = (first, second);
        (updates[1].proof, updates[2].proof) = (updates[2].proof, updates[1].proof);
        _expect(ITaskTypes.OpeningInvalid.selector, 1);
        _relay(updates);
    }

    /// @dev Errors that cancel at the weights of the honest batch: what is changed must change the weights.
    function test_commitUpdates_refusesValuesMadeForTheHonestWeights() public {
        ITaskTypes.SignedUpdate[] memory updates = _batch(COUNT);
        uint256 ratio = _weights.ratio(updates, _claims(updates));
        updates[1].value = bytes32(addmod(uint256(updates[1].value), ratio, Kzg.MODULUS));
        updates[2].value = bytes32(addmod(uint256(updates[2].value), Kzg.MODULUS - 1, Kzg.MODULUS));
        _expect(ITaskTypes.OpeningInvalid.selector, 1);
        _relay(updates);
    }

    /// @dev The same by proofs: an error D in proof i counts r^i (z_i - tau) D, and multiples of tau can be had.
    function test_commitUpdates_refusesProofsMadeForTheHonestWeights() public {
        ITaskTypes.SignedUpdate[] memory updates = _batch(COUNT);
        Claim[] memory claims = _claims(updates);
        uint256 ratio = _weights.ratio(updates, claims);
        G1 memory first = Points.times(_fromTau(claims[2].point), ratio);
        G1 memory second = Points.negated(_fromTau(claims[1].point));
        updates[1].proof = Points.plus(updates[1].proof, first);
        updates[2].proof = Points.plus(updates[2].proof, second);
        _expect(ITaskTypes.OpeningInvalid.selector, 1);
        _relay(updates);
    }

    /// @dev (z - tau) G1.
    function _fromTau(uint256 z) private view returns (G1 memory) {
        return Points.plus(Points.times(Points.generator(), z), Points.negated(Lines.tau()));
    }

    function _claims(ITaskTypes.SignedUpdate[] memory updates) private view returns (Claim[] memory claims) {
        claims = new Claim[](updates.length);
        for (uint256 i = 0; i < updates.length; ++i) {
            (uint256 ratio, uint256 z) = tasks.challenge(id, 0, _signer(i), Lines.compressed(_lines(0, i)));
            claims[i] = Claim(i, ratio, z);
        }
    }

    /// @dev Com(X) minus the others' commitments, signed by who posts it, beside the others in one batch.
    function test_commitUpdates_refusesRogueCommitment() public {
        ITaskTypes.SignedUpdate[] memory updates = _batch(COUNT);
        Line[] memory wanted = _lines(0, 3);
        bytes memory compressed;
        G1[2] memory rogue;
        for (uint256 blob = 0; blob < 2; ++blob) {
            rogue[blob] = Lines.point(wanted[blob]);
            for (uint256 i = 0; i < 3; ++i) {
                rogue[blob] = Points.plus(rogue[blob], Points.negated(Lines.point(_line(0, i, blob))));
            }
            compressed = bytes.concat(compressed, Bls12381.compress(rogue[blob]));
        }
        (uint256 ratio, uint256 z) = tasks.challenge(id, 0, _signer(3), compressed);
        (, updates[3].value, updates[3].proof) = Lines.opened(wanted, ratio, z);
        updates[3].points = abi.encode(rogue);
        (updates[3].r, updates[3].vs) = _sign(_key(3), tasks.commitmentDigest(id, 0, compressed, 0, Lines.BASE));
        _expect(ITaskTypes.OpeningInvalid.selector, 3);
        _relay(updates);
    }

    function test_commitUpdates_refusesValueInAnotherForm() public {
        ITaskTypes.SignedUpdate[] memory updates = _batch(COUNT);
        updates[1].value = bytes32(uint256(updates[1].value) + Kzg.MODULUS);
        _expect(ITaskTypes.OpeningInvalid.selector, 1);
        _relay(updates);
    }

    function test_commitUpdates_refusesProofsThatAreNoPointsOfTheGroup() public {
        ITaskTypes.SignedUpdate[] memory updates = _batch(COUNT);
        G1 memory proof = updates[2].proof;
        updates[2].proof = G1({xHigh: proof.xHigh, xLow: proof.xLow, yHigh: proof.yHigh, yLow: proof.yLow ^ 1});
        _expect(ITaskTypes.OpeningInvalid.selector, 2);
        _relay(updates);
        // (0, 2) is on the curve, and of order 3.
        updates[2].proof = G1({xHigh: 0, xLow: 0, yHigh: 0, yLow: 2});
        _expect(ITaskTypes.OpeningInvalid.selector, 2);
        _relay(updates);
    }

    function test_commitUpdates_refusesPointsOutsideTheGroup() public {
        bytes memory low = abi.encode(G1({xHigh: 0, xLow: 0, yHigh: 0, yLow: 2}));
        G1 memory second = Lines.point(_line(0, 2, 1));
        bytes memory compressed = bytes.concat(Bls12381.compress(abi.decode(low, (G1))), Bls12381.compress(second));
        ITaskTypes.SignedUpdate[] memory updates = _batch(COUNT);
        updates[2].points = bytes.concat(low, abi.encode(second));
        (updates[2].r, updates[2].vs) = _sign(_key(2), tasks.commitmentDigest(id, 0, compressed, 0, Lines.BASE));
        _expect(ITaskTypes.OpeningInvalid.selector, 2);
        _relay(updates);
    }

    function test_commitUpdates_refusesMalformedPoints() public {
        ITaskTypes.SignedUpdate[] memory updates = _batch(COUNT);
        bytes memory points = updates[2].points;
        updates[2].points = bytes.concat(points, hex"00");
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PointsWrong.selector, 257, 256));
        _relay(updates);
        updates[2].points = bytes.concat(new bytes(128), abi.encode(Lines.point(_line(0, 2, 1))));
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.CommitmentMalformed.selector, _signer(2), 0));
        _relay(updates);
    }

    function _one(ITaskTypes.SignedUpdate memory update) private pure returns (ITaskTypes.SignedUpdate[] memory one) {
        one = new ITaskTypes.SignedUpdate[](1);
        one[0] = update;
    }
}
