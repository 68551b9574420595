// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Bits} from "../src/libraries/Bits.sol";
import {Line, Lines} from "./utils/Crypto.sol";
import {RelayFixture} from "./utils/RelayFixture.sol";

contract RelayingTest is RelayFixture {
    using Bits for uint256;

    uint256 private constant COUNT = 4;

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
            emit ITaskTypes.UpdateCommitted(id, 0, _signer(i), updates[i].pointHashes, 0, Lines.BASE);
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

    function test_commitUpdates_skipsWhoCommittedMeanwhile() public {
        ITaskTypes.SignedUpdate[] memory updates = _batch(3);
        _commit(0, _signer(1), _updateOf(updates[1].pointHashes));
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
        (updates[0], updates[1]) = (_signed(0), _signed(0, _lines(0, 1)));
        vm.expectEmit(address(tasks));
        emit ITaskTypes.UpdateCommitted(id, 0, _signer(0), updates[0].pointHashes, 0, Lines.BASE);
        _relay(updates);
        vm.assertEq(_roundState().committed, 1);
        ITaskTypes.Update memory again = _updateOf(updates[1].pointHashes);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.AlreadyCommitted.selector, id, _signer(0)));
        vm.prank(_signer(0));
        tasks.commitUpdate(id, 0, 0, again);
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
        bytes32 digest = tasks.commitmentDigest(id, 0, updates[2].pointHashes, 0, Lines.BASE);
        (updates[2].r, updates[2].vs) = _sign(_key(1), digest);
        _expect(ITaskTypes.SignatureInvalid.selector, 2);
        _relay(updates);
    }

    /// @dev Without a signature, anybody could commit a hospital to anything.
    function test_commitUpdates_refusesUnsignedUpdateInAnothersName() public {
        ITaskTypes.SignedUpdate memory update = _signed(0, _lines(0, 1));
        (update.r, update.vs) = (0, 0);
        _expect(ITaskTypes.SignatureInvalid.selector, 0);
        _relay(_one(update));
    }

    function test_commitUpdates_refusesSignatureOfAnotherRoundBaseTaskChainOrContract() public {
        bytes32[] memory hashes = _signed(0).pointHashes;
        _refuseDigest(tasks.commitmentDigest(id, 1, hashes, 0, Lines.BASE));
        _refuseDigest(tasks.commitmentDigest(id, 0, hashes, 0, bytes32(uint256(Lines.BASE) ^ 1)));
        _refuseDigest(tasks.commitmentDigest(id + 1, 0, hashes, 0, Lines.BASE));
        uint256 chain = block.chainid;
        vm.chainId(chain + 1);
        bytes32 elsewhere = tasks.commitmentDigest(id, 0, hashes, 0, Lines.BASE);
        vm.chainId(chain);
        _refuseDigest(elsewhere);
        vm.etch(address(0xC0DE), address(tasks).code);
        (, bytes memory answer) =
            address(0xC0DE).staticcall(abi.encodeCall(tasks.commitmentDigest, (id, 0, hashes, 0, Lines.BASE)));
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

    function test_commitUpdates_refusesOtherHashesThanTheSignedOnes() public {
        ITaskTypes.SignedUpdate[] memory updates = _batch(COUNT);
        updates[2].pointHashes = _hashes(0, _signer(2), _lines(0, 7));
        _expect(ITaskTypes.SignatureInvalid.selector, 2);
        _relay(updates);
        bytes32[] memory hashes = _hashes(0, _signer(2), _lines(0, 2));
        (hashes[0], hashes[1]) = (hashes[1], hashes[0]);
        updates[2].pointHashes = hashes;
        _expect(ITaskTypes.SignatureInvalid.selector, 2);
        _relay(updates);
    }

    function test_commitUpdates_refusesWrongNumberOfHashes() public {
        ITaskTypes.SignedUpdate[] memory updates = _batch(COUNT);
        for (uint256 blobs = 0; blobs < 4; ++blobs) {
            if (blobs == 2) continue;
            updates[2] = _signed(2, new bytes32[](blobs));
            vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PointsWrong.selector, 32 * blobs, 64));
            _relay(updates);
        }
    }

    /// @dev The cohort is not signed, but only the hospital's own is taken.
    function test_commitUpdates_refusesAnotherCohort() public {
        _toTwoCohorts();
        ITaskTypes.SignedUpdate[] memory updates = _batch(COUNT);
        uint256 other = 1 - updates[2].cohort;
        updates[2].cohort = other;
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NotInCohort.selector, _signer(2), other));
        _relay(1, updates);
        updates[2].cohort = type(uint256).max;
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NotInCohort.selector, _signer(2), type(uint256).max));
        _relay(1, updates);
    }

    /// @dev However cohorts follow one another, the chain keeps what single calls in the same order give.
    function test_commitUpdates_keepsWhatSingleCallsGive() public {
        _toTwoCohorts();
        uint256[] memory each = _byCohort();
        uint256[4][3] memory orders = [
            [each[0], each[1], each[2], each[3]],
            [each[0], each[2], each[1], each[3]],
            [each[2], each[0], each[3], each[1]]
        ];
        for (uint256 i = 0; i < COUNT; ++i) {
            _arrive(1, each[i]);
        }
        uint256 start = vm.snapshotState();
        for (uint256 way = 0; way < 4; ++way) {
            if (way == 3) _commitSingly(each);
            else _relay(1, _ordered(orders[way]));
            _assertPhase(ITaskTypes.Phase.Uploading);
            _fix(15);
            // Each takes the same order of commitments, and no other.
            _publishAll();
            _assertPhase(ITaskTypes.Phase.Drawing);
            vm.revertToState(start);
        }
    }

    /// @dev Two batches, and hospitals that were faster, share the running hashes.
    function test_commitUpdates_goesOnFromWhatOthersCommitted() public {
        _toTwoCohorts();
        uint256[] memory each = _byCohort();
        ITaskTypes.SignedUpdate[] memory updates = _ordered([each[3], each[2], each[1], each[0]]);
        uint256[4] memory arrived = [each[1], each[3], each[2], each[0]];
        for (uint256 i = 0; i < COUNT; ++i) {
            _arrive(1, arrived[i]);
        }
        _relay(1, _one(_signed(each[1])));
        _relay(1, updates);
        _fix(15);
        _publishAll();
        _assertPhase(ITaskTypes.Phase.Drawing);
    }

    /// @dev The hospitals of the first cohort, and then those of the second.
    function _byCohort() private view returns (uint256[] memory each) {
        each = new uint256[](COUNT);
        uint256 next;
        for (uint256 cohort = 0; cohort < 2; ++cohort) {
            for (uint256 i = 0; i < COUNT; ++i) {
                if (_cohortOfSigner(i) == cohort) each[next++] = i;
            }
        }
    }

    function _ordered(uint256[4] memory order) private view returns (ITaskTypes.SignedUpdate[] memory updates) {
        updates = new ITaskTypes.SignedUpdate[](COUNT);
        for (uint256 i = 0; i < COUNT; ++i) {
            updates[i] = _signed(order[i]);
        }
    }

    function _commitSingly(uint256[] memory order) private {
        for (uint256 i = 0; i < order.length; ++i) {
            ITaskTypes.SignedUpdate memory update = _signed(order[i]);
            vm.prank(update.hospital);
            tasks.commitUpdate(id, 1, update.cohort, _updateOf(update.pointHashes));
        }
    }

    /// @dev A training round of two cohorts of two.
    function _toTwoCohorts() private {
        _relay(_batch(COUNT));
        _fix(15);
        _publishAll();
        _form();
    }

    function _one(ITaskTypes.SignedUpdate memory update) private pure returns (ITaskTypes.SignedUpdate[] memory one) {
        one = new ITaskTypes.SignedUpdate[](1);
        one[0] = update;
    }
}
