// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../src/interfaces/IStaking.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Bits} from "../src/libraries/Bits.sol";
import {Lines} from "./utils/Crypto.sol";
import {MaskingFixture} from "./utils/MaskingFixture.sol";
import {RelayFixture} from "./utils/RelayFixture.sol";

/// @notice Tasks whose updates travel masked: what is signed and emitted for it, and cohorts of which no sum can be
///         had.
contract MaskingTest is MaskingFixture, RelayFixture {
    using Bits for uint256;

    bytes private constant SHARES = "secret shares";

    function _refuseDrop(uint256 cohort, bytes memory refusal) private {
        uint256 round = _round();
        vm.expectRevert(refusal);
        vm.prank(AGGREGATOR);
        tasks.dropCohort(id, round, cohort);
    }

    function _reason(uint256 hospital) private view returns (ITaskTypes.PayoutReason) {
        return tasks.explain(id, 1, _hospital(hospital)).reason;
    }

    function _isReason(uint256 hospital, ITaskTypes.PayoutReason reason) private view {
        vm.assertEq(uint256(_reason(hospital)), uint256(reason));
    }

    function test_propose_wantsThreeToACohort() public {
        ITaskTypes.TaskParams memory params = _masked(_params());
        params.minCohortSize = 2;
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.ParamsInvalid.selector, "minCohortSize"));
        _propose(params);
        params.minCohortSize = 3;
        _propose(params);
    }

    function test_commitUpdate_emitsItsSecretShares() public {
        _propose(_masked(_params()));
        _joinMembers();
        ITaskTypes.Update memory update = _update(0, 2);
        update.shareBundle = SHARES;
        vm.expectEmit(address(tasks));
        emit ITaskTypes.SharesPublished(id, 0, _hospital(2), SHARES);
        vm.expectEmit(address(tasks));
        emit ITaskTypes.UpdateCommitted(id, 0, _hospital(2), update.pointHashes, keccak256(SHARES), Lines.BASE);
        _commit(0, _hospital(2), update);
    }

    function test_commitUpdates_emitsTheSecretSharesThatWereSigned() public {
        _toRelaying(4, 1);
        ITaskTypes.SignedUpdate[] memory updates = new ITaskTypes.SignedUpdate[](1);
        updates[0] = _signed(0);
        updates[0].shareBundle = keccak256(SHARES);
        _sign(0, updates[0]);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NotAggregator.selector, STRANGER));
        vm.prank(STRANGER); // who may not have its bytes
        tasks.commitUpdates(id, 0, updates);
        vm.expectEmit(address(tasks));
        emit ITaskTypes.UpdateCommitted(id, 0, _signer(0), updates[0].pointHashes, keccak256(SHARES), Lines.BASE);
        vm.prank(AGGREGATOR);
        tasks.commitUpdates(id, 0, updates);
    }

    /// @dev Otherwise a relayer could give the cohort shares of its own.
    function test_commitUpdates_refusesOtherSecretSharesThanTheSignedOnes() public {
        _toRelaying(4, 1);
        ITaskTypes.SignedUpdate[] memory updates = new ITaskTypes.SignedUpdate[](1);
        updates[0] = _signed(0);
        updates[0].shareBundle = keccak256("another");
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.SignatureInvalid.selector, _signer(0)));
        vm.prank(AGGREGATOR);
        tasks.commitUpdates(id, 0, updates);
    }

    function test_dropCohort_leavesTheOthers() public {
        _toPublishingOf(_masked(_params()));
        uint256 dropped = tasks.cohortMembers(id, 1, 1);
        vm.expectEmit(address(tasks));
        emit ITaskTypes.CohortDropped(id, 1, 1);
        _drop(1);
        _assertPhase(ITaskTypes.Phase.Publishing);
        _publishCohort(0);
        _draw();
        _scoreAll(1_000);
        tasks.settle(id, 1);
        _assertDropped(dropped, 1);
    }

    function test_dropCohort_afterTheOthersMovesTheTaskOn() public {
        _toPublishingOf(_masked(_params()));
        uint256 dropped = tasks.cohortMembers(id, 1, 0);
        _sumCohort(0, 0); // anybody may, and it must not count
        _publishCohort(1);
        _drop(0);
        _assertPhase(ITaskTypes.Phase.Drawing);
        _draw();
        _scoreAll(1_000);
        tasks.settle(id, 1);
        _assertDropped(dropped, 0);
    }

    /// @dev Nobody of it is paid or slashed, and the aggregator loses the fee for its weight.
    function _assertDropped(uint256 dropped, uint256 cohort) private view {
        ITaskTypes.RoundState memory round = tasks.roundState(id, 1);
        vm.assertEq(uint256(round.outcome), uint256(ITaskTypes.Outcome.Settled));
        vm.assertEq(round.survivors, Bits.below(MEMBERS)); // fixed once
        vm.assertEq(round.droppedCohorts, uint256(0).with(cohort));
        vm.assertEq(round.acceptedCohorts, uint256(3).without(cohort));
        uint256 weight;
        for (uint256 i = 0; i < MEMBERS; ++i) {
            bool isDropped = dropped.has(i);
            _isReason(i, isDropped ? ITaskTypes.PayoutReason.NotInSum : ITaskTypes.PayoutReason.Paid);
            vm.assertTrue((_earned(_hospital(i)) == 0) == isDropped);
            vm.assertEq(_locked(_hospital(i), IStaking.Role.Hospital), 100e18);
            if (!isDropped) weight += i + 1;
        }
        vm.assertEq(_earned(AGGREGATOR), 50e18 * weight / 28);
    }

    function test_dropCohort_ofAllIsVoidAndBlamesNobody() public {
        _toPublishingOf(_masked(_params()));
        _drop(0);
        _drop(1);
        _assertVoid(1, ITaskTypes.VoidReason.NoSums);
        vm.assertEq(_locked(AGGREGATOR, IStaking.Role.Aggregator), 200e18);
        vm.assertEq(uint256(tasks.explain(id, 1, AGGREGATOR).reason), uint256(ITaskTypes.PayoutReason.Void));
        for (uint256 i = 0; i < MEMBERS; ++i) {
            _isReason(i, ITaskTypes.PayoutReason.Void);
            vm.assertEq(_locked(_hospital(i), IStaking.Role.Hospital), 100e18);
        }
    }

    /// @dev Five of seven must survive. Nobody can remove the masks of four, though that is more than the task's
    ///      minimum, and hospitals that refuse to help then must not be slashed.
    function test_fixSurvivors_wantsTwoThirdsOfAMaskedCohort() public {
        _propose(_masked(_params()));
        _joinMembers();
        _commitMembers();
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.SurvivorsInvalid.selector, Bits.below(4)));
        vm.prank(AGGREGATOR);
        tasks.fixSurvivors(id, 0, Bits.below(4));
        _fix(Bits.below(5));
        _assertPhase(ITaskTypes.Phase.Publishing);
    }

    /// @dev `explain` keeps the slash for a withheld upload.
    function test_explain_namesWhoWasLeftOutOfADroppedCohort() public {
        _toUploadingOf(_masked(_params()));
        uint256 four = tasks.cohortMembers(id, 1, 0).count() == 4 ? 0 : 1;
        uint256 missing;
        while (!tasks.cohortMembers(id, 1, four).has(missing)) ++missing;
        _fix(Bits.below(MEMBERS).without(missing));
        _drop(four);
        _publishCohort(1 - four);
        _draw();
        _scoreAll(1_000);
        tasks.settle(id, 1);
        ITaskTypes.Payout memory payout = tasks.explain(id, 1, _hospital(missing));
        vm.assertEq(uint256(payout.reason), uint256(ITaskTypes.PayoutReason.Withheld));
        vm.assertEq(payout.slash, 100e18 - _locked(_hospital(missing), IStaking.Role.Hospital));
        vm.assertTrue(payout.slash > 0);
    }

    function test_dropCohort_ofTheStatisticsEndsTheTask() public {
        _toStatisticsOf(_masked(_params()));
        _drop(0);
        _assertVoid(0, ITaskTypes.VoidReason.NoSums);
        _assertPhase(ITaskTypes.Phase.Ended);
    }

    function test_dropCohort_refusals() public {
        _toUploadingOf(_masked(_params()));
        _refuseDrop(
            0,
            abi.encodeWithSelector(
                ITaskTypes.WrongPhase.selector, id, ITaskTypes.Phase.Uploading, ITaskTypes.Phase.Publishing
            )
        );
        _fix(Bits.below(MEMBERS));
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.NotAggregator.selector, STRANGER));
        vm.prank(STRANGER);
        tasks.dropCohort(id, 1, 0);
        _refuseDrop(2, abi.encodeWithSelector(ITaskTypes.CohortUnknown.selector, 2));
        _drop(1);
        _refuseDrop(1, abi.encodeWithSelector(ITaskTypes.CohortUnknown.selector, 1));
        _setBlob(_sumCohort(0, 0));
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.CohortUnknown.selector, 1));
        vm.prank(AGGREGATOR);
        tasks.publish(id, 1, 1, 0, 0, 1);
        uint64 deadline = tasks.state(id).deadline;
        _pass();
        _refuseDrop(0, abi.encodeWithSelector(ITaskTypes.PhaseOver.selector, id, deadline));
    }

    /// @dev A published sum cannot be taken back.
    function test_dropCohort_refusesOneThatIsPartlyPublished() public {
        ITaskTypes.TaskParams memory params = _masked(_params());
        params.updateBlobs = 2;
        _toPublishingOf(params);
        _publish(0, 1, _sumCohort(0, 1));
        _refuseDrop(0, abi.encodeWithSelector(ITaskTypes.AlreadyPublished.selector, 0, 0));
    }

    function test_dropCohort_isForMaskedTasksAlone() public {
        _toPublishing();
        _refuseDrop(0, abi.encodeWithSelector(ITaskTypes.NotMasked.selector, id));
    }
}
