// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../src/interfaces/IStaking.sol";
import {ITaskRounds} from "../src/interfaces/ITaskRounds.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Bits} from "../src/libraries/Bits.sol";
import {Scores} from "../src/libraries/Scores.sol";
import {DecoyFixture} from "./utils/DecoyFixture.sol";
import {MaskingFixture} from "./utils/MaskingFixture.sol";
import {Log} from "./utils/Vm.sol";

/// @notice Disputes over masked cohorts whose uploads do not add up to their commitments: accuse, submit evidence,
///         name, judge.
contract DisputingTest is MaskingFixture, DecoyFixture {
    using Bits for uint256;

    bytes32 private constant ACCUSATION = keccak256("accusation");
    bytes32 private constant EVIDENCE = keccak256("evidence");
    bytes private constant SUBMITTED = "evidence";
    uint256 private constant FALSE_UPLOAD = 20e18; // a fifth of a hospital's bond, as for a harmful cohort

    uint256 private _entropy;

    // Steps.

    function _accuse(uint256 cohort) private {
        uint256 round = _round();
        vm.prank(AGGREGATOR);
        tasks.accuseCohort(id, round, cohort, ACCUSATION, EVIDENCE);
    }

    function _submitEvidence(address account) private {
        (uint256 round, uint256 step) = (_round(), _step());
        vm.prank(account);
        tasks.submitEvidence(id, round, step, SUBMITTED);
    }

    function _name(uint256 hospitals) private {
        uint256 round = _round();
        vm.prank(AGGREGATOR);
        tasks.nameCheaters(id, round, hospitals);
    }

    function _namingStart() private view returns (uint64) {
        return uint64(tasks.state(id).deadline - WINDOW);
    }

    function _step() private view returns (uint256) {
        return block.timestamp < _namingStart() - WINDOW ? 0 : 1;
    }

    /// @dev Cohort 0 is published, the other one accused.
    function _toDisputing() private {
        _toPublishingOf(_masked(_params()));
        _publishCohort(0);
        _accuse(1);
    }

    /// @dev Nothing is published.
    function _toDisputingAll(ITaskTypes.TaskParams memory params) private {
        _toPublishingOf(params);
        _accuse(0);
        _accuse(1);
    }

    function _nameAndDraw(uint256 hospitals) private {
        vm.warp(_namingStart());
        _name(hospitals);
        _draw();
    }

    /// @dev Round 1 ends with these hospitals guilty, and these cohorts accepted.
    function _nameAndSettle(uint256 hospitals, uint256 against, int64[] memory scores, uint256 accepted) private {
        _nameAndDraw(hospitals);
        _vote(against, scores);
        tasks.settle(id, 1);
        _assertSettled(1, accepted);
        _sayOf(1, hospitals, ITaskTypes.PayoutReason.FalseUpload, FALSE_UPLOAD);
    }

    /// @dev The first `against` voters say that the named hospitals are not the cheaters.
    function _vote(uint256 against, int64[] memory scores) private {
        int64[][] memory ballots = new int64[][](VOTERS);
        for (uint256 i = 0; i < VOTERS; ++i) {
            ballots[i] = scores;
            if (i >= against) continue;
            ballots[i] = new int64[](scores.length);
            ballots[i][0] = Scores.DOES_NOT_MATCH;
        }
        _judge(ballots);
    }

    function _refused(address sender, bytes memory call, bytes memory refusal) private {
        vm.prank(sender);
        (bool ok, bytes memory answer) = address(tasks).call(call);
        vm.assertFalse(ok);
        vm.assertEq(answer, refusal);
    }

    function _refuseAccusing(address sender, uint256 cohort, bytes memory refusal) private {
        _refused(
            sender, abi.encodeCall(ITaskRounds.accuseCohort, (id, _round(), cohort, ACCUSATION, EVIDENCE)), refusal
        );
    }

    function _refuseEvidence(address sender, bytes memory refusal) private {
        _refused(sender, abi.encodeCall(ITaskRounds.submitEvidence, (id, _round(), 0, SUBMITTED)), refusal);
    }

    function _refuseNaming(address sender, uint256 hospitals, bytes memory refusal) private {
        _refused(sender, abi.encodeCall(ITaskRounds.nameCheaters, (id, _round(), hospitals)), refusal);
    }

    function _wrongPhase(ITaskTypes.Phase actual, ITaskTypes.Phase wanted) private view returns (bytes memory) {
        return abi.encodeWithSelector(ITaskTypes.WrongPhase.selector, id, actual, wanted);
    }

    function _over(uint64 deadline) private view returns (bytes memory) {
        return abi.encodeWithSelector(ITaskTypes.PhaseOver.selector, id, deadline);
    }

    function _notAMember(address account) private view returns (bytes memory) {
        return abi.encodeWithSelector(ITaskTypes.NotAMember.selector, id, account);
    }

    // Assertions.

    function _first(uint256 hospitals) private pure returns (uint256 index) {
        while (!hospitals.has(index)) ++index;
    }

    function _memberOf(uint256 cohort) private view returns (uint256) {
        return _first(_survivors(_round(), cohort));
    }

    function _says(uint256 round, address account, ITaskTypes.PayoutReason reason, uint256 slash) private view {
        ITaskTypes.Payout memory payout = tasks.explain(id, round, account);
        vm.assertEq(uint256(payout.reason), uint256(reason));
        vm.assertEq(payout.slash, slash);
        vm.assertTrue(payout.reason == ITaskTypes.PayoutReason.Paid || payout.reward == 0);
    }

    /// @dev `explain` gives these hospitals this reason and this slash in the round.
    function _sayOf(uint256 round, uint256 hospitals, ITaskTypes.PayoutReason reason, uint256 slash) private view {
        for (uint256 i = 0; hospitals >> i != 0; ++i) {
            if (!hospitals.has(i)) continue;
            _says(round, _hospital(i), reason, slash);
            vm.assertEq(_locked(_hospital(i), IStaking.Role.Hospital), 100e18 - slash);
        }
    }

    function _assertSettled(uint256 round, uint256 accepted) private view {
        ITaskTypes.RoundState memory state = tasks.roundState(id, round);
        vm.assertEq(uint256(state.outcome), uint256(ITaskTypes.Outcome.Settled));
        vm.assertEq(state.acceptedCohorts, accepted);
        vm.assertEq(state.guilty, state.named);
    }

    function _assertNobodyGuilty(uint256 round) private view {
        vm.assertEq(tasks.roundState(id, round).guilty, 0);
        _sayOf(round, Bits.below(MEMBERS), ITaskTypes.PayoutReason.Void, 0);
    }

    // Accusing.

    function test_accuseCohort_keepsWhomAndStartsDisputing() public {
        _toPublishingOf(_masked(_params()));
        uint256 accused = tasks.cohortMembers(id, 1, 1);
        vm.expectEmit(address(tasks));
        emit ITaskTypes.CohortDropped(id, 1, 1);
        vm.expectEmit(address(tasks));
        emit ITaskTypes.CohortAccused(id, 1, 1, ACCUSATION, EVIDENCE);
        _accuse(1);
        _assertPhase(ITaskTypes.Phase.Publishing);
        vm.warp(block.timestamp + WINDOW / 2);
        bytes32 hash = _sumCohort(0, 0);
        vm.expectEmit(address(tasks));
        emit ITaskTypes.PhaseStarted(id, 1, ITaskTypes.Phase.Disputing, uint64(block.timestamp + 3 * WINDOW));
        _publish(0, 0, hash);
        ITaskTypes.RoundState memory round = _roundState();
        vm.assertEq(round.accused, accused);
        vm.assertEq(round.droppedCohorts, 2);
        vm.assertEq(round.viableCohorts, 1);
        vm.assertEq(round.named, 0);
        vm.assertEq(round.guilty, 0);
    }

    /// @dev The larger cohort is accused, and one of its hospitals kept its upload.
    function _accuseWithOneMissing() private returns (uint256 four, uint256 missing) {
        _toUploadingOf(_masked(_params()));
        four = tasks.cohortMembers(id, 1, 0).count() == 4 ? 0 : 1;
        missing = _first(tasks.cohortMembers(id, 1, four));
        _fix(Bits.below(MEMBERS).without(missing));
        _accuse(four);
        _drop(1 - four);
    }

    /// @dev A hospital that committed sent secret shares. They may be wrong, even if it did not upload.
    function test_accuseCohort_accusesWhoCommittedInItsCohortAlone() public {
        (uint256 four, uint256 missing) = _accuseWithOneMissing();
        _assertPhase(ITaskTypes.Phase.Disputing);
        uint256 accused = tasks.cohortMembers(id, 1, four);
        vm.assertEq(_roundState().accused, accused);
        _refuseEvidence(_hospital(missing), _notAMember(_hospital(missing)));
        _refuseEvidence(_hospital(_memberOf(1 - four)), _notAMember(_hospital(_memberOf(1 - four))));
        vm.warp(_namingStart());
        uint256 named = accused.with(_memberOf(1 - four));
        _refuseNaming(AGGREGATOR, named, abi.encodeWithSelector(ITaskTypes.CheatersInvalid.selector, named));
        _nameAndDraw(uint256(0).with(missing));
        _vote(0, _scores(0));
        tasks.settle(id, 1);
        // Once, though it withheld its upload, too.
        _sayOf(1, uint256(0).with(missing), ITaskTypes.PayoutReason.FalseUpload, FALSE_UPLOAD);
        _sayOf(1, Bits.below(MEMBERS).without(missing), ITaskTypes.PayoutReason.NotInSum, 0);
    }

    function test_accuseCohort_leavesWhoWithheldAndIsNotNamedAsItWas() public {
        (uint256 four, uint256 missing) = _accuseWithOneMissing();
        uint256 named = tasks.cohortMembers(id, 1, four).without(missing);
        _nameAndDraw(named);
        _vote(0, _scores(0));
        tasks.settle(id, 1);
        _sayOf(1, named, ITaskTypes.PayoutReason.FalseUpload, FALSE_UPLOAD);
        _sayOf(1, uint256(0).with(missing), ITaskTypes.PayoutReason.Withheld, 3e18);
    }

    function test_accuseCohort_refusals() public {
        _toUploadingOf(_masked(_params()));
        _refuseAccusing(AGGREGATOR, 0, _wrongPhase(ITaskTypes.Phase.Uploading, ITaskTypes.Phase.Publishing));
        _fix(Bits.below(MEMBERS));
        _refuseAccusing(STRANGER, 0, abi.encodeWithSelector(ITaskTypes.NotAggregator.selector, STRANGER));
        address hospital = _hospital(_memberOf(0));
        _refuseAccusing(hospital, 0, abi.encodeWithSelector(ITaskTypes.NotAggregator.selector, hospital));
        _refuseAccusing(AGGREGATOR, 2, abi.encodeWithSelector(ITaskTypes.CohortUnknown.selector, 2));
        _refused(
            AGGREGATOR,
            abi.encodeCall(ITaskRounds.accuseCohort, (id, 0, 0, ACCUSATION, EVIDENCE)),
            abi.encodeWithSelector(ITaskTypes.WrongRound.selector, id, 1, 0)
        );
        uint64 deadline = tasks.state(id).deadline;
        _accuse(1);
        _refuseAccusing(AGGREGATOR, 1, abi.encodeWithSelector(ITaskTypes.CohortUnknown.selector, 1));
        _pass();
        _refuseAccusing(AGGREGATOR, 0, _over(deadline));
        tasks.tick(id); // the other cohort is neither published nor dropped
        _assertVoid(1, ITaskTypes.VoidReason.NotPublished);
        _assertNobodyGuilty(1);
    }

    /// @dev A published sum cannot be taken back.
    function test_accuseCohort_refusesOneThatIsPublished() public {
        ITaskTypes.TaskParams memory params = _masked(_params());
        params.updateBlobs = 2;
        _toPublishingOf(params);
        bytes memory refusal = abi.encodeWithSelector(ITaskTypes.AlreadyPublished.selector, 0, 0);
        _publish(0, 1, _sumCohort(0, 1));
        _refuseAccusing(AGGREGATOR, 0, refusal);
        _publish(0, 0, _sumCohort(0, 0));
        _refuseAccusing(AGGREGATOR, 0, refusal);
    }

    function test_accuseCohort_isForMaskedTasksAlone() public {
        _toPublishing();
        _refuseAccusing(AGGREGATOR, 0, abi.encodeWithSelector(ITaskTypes.NotMasked.selector, id));
    }

    /// @dev All steps but the last fit one transaction. The last waits for the hospitals.
    function test_accuseCohort_worksInABatchThatCannotNameToo() public {
        _toPublishingOf(_masked(_params()));
        bytes[] memory calls = new bytes[](3);
        calls[0] = abi.encodeCall(ITaskRounds.accuseCohort, (id, 1, 0, ACCUSATION, EVIDENCE));
        calls[1] = abi.encodeCall(ITaskRounds.accuseCohort, (id, 1, 1, ACCUSATION, EVIDENCE));
        calls[2] = abi.encodeCall(ITaskRounds.nameCheaters, (id, 1, 1));
        uint64 naming = uint64(block.timestamp + 2 * WINDOW);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PhaseNotOver.selector, id, naming));
        vm.prank(AGGREGATOR);
        tasks.multicall(calls);
        bytes[] memory accusing = new bytes[](2);
        (accusing[0], accusing[1]) = (calls[0], calls[1]);
        vm.prank(AGGREGATOR);
        tasks.multicall(accusing);
        _assertPhase(ITaskTypes.Phase.Disputing);
        vm.assertEq(_roundState().accused, Bits.below(MEMBERS));
    }

    // Submitting evidence.

    /// @dev Time sets the step, to the second. After the second step evidence is too late.
    /// forge-config: default.fuzz.runs = 64
    function test_submitEvidence_countsForTheStepOfItsTime(uint256 offset) public {
        _toDisputing();
        address hospital = _hospital(_memberOf(1));
        offset = offset % (3 * WINDOW + 2);
        uint64 naming = _namingStart();
        (uint256 start, uint64 deadline) = (block.timestamp, tasks.state(id).deadline);
        vm.warp(start + offset);
        if (offset >= 2 * WINDOW) {
            return _refuseEvidence(hospital, _over(offset <= 3 * WINDOW ? naming : deadline));
        }
        uint256 step = offset < WINDOW ? 0 : 1;
        // A hospital may submit evidence again, but readers take the first.
        for (uint256 i = 0; i < 2; ++i) {
            vm.expectEmit(address(tasks));
            emit ITaskTypes.EvidenceSubmitted(id, 1, hospital, step, SUBMITTED);
            _submitEvidence(hospital);
        }
    }

    function test_submitEvidence_turnsWithTheSecond() public {
        uint256[4] memory offsets = [WINDOW - 1, WINDOW, 2 * WINDOW - 1, 2 * WINDOW];
        for (uint256 i = 0; i < offsets.length; ++i) {
            uint256 state = vm.snapshotState();
            test_submitEvidence_countsForTheStepOfItsTime(offsets[i]);
            vm.revertToState(state);
        }
    }

    /// @dev A relayer may send evidence late or early, but it counts only for its own step.
    /// forge-config: default.fuzz.runs = 64
    function test_submitEvidence_countsForNoOtherStep(uint256 offset, uint256 given) public {
        _toDisputing();
        address hospital = _hospital(_memberOf(1));
        vm.warp(block.timestamp + offset % (2 * WINDOW));
        uint256 step = _step();
        given %= 4;
        if (given == step) given = 1 - step;
        _refused(
            hospital,
            abi.encodeCall(ITaskRounds.submitEvidence, (id, 1, given, SUBMITTED)),
            abi.encodeWithSelector(ITaskTypes.WrongStep.selector, id, step, given)
        );
    }

    /// @dev Evidence for the first step does not count in the second.
    function test_submitEvidence_keptBackIsRefusedAndLeavesTheNextStepToTheHospital() public {
        _toDisputing();
        address hospital = _hospital(_memberOf(1));
        bytes memory kept = abi.encodeCall(ITaskRounds.submitEvidence, (id, 1, 0, bytes("points")));
        bytes memory refusal = abi.encodeWithSelector(ITaskTypes.WrongStep.selector, id, 1, 0);
        vm.warp(_namingStart() - WINDOW);
        _refused(hospital, kept, refusal);
        vm.expectEmit(address(tasks));
        emit ITaskTypes.EvidenceSubmitted(id, 1, hospital, 1, SUBMITTED);
        _submitEvidence(hospital);
        _refused(hospital, kept, refusal);
    }

    function test_submitEvidence_refusals() public {
        _toPublishingOf(_masked(_params()));
        (address accused, address other) = (_hospital(_memberOf(1)), _hospital(_memberOf(0)));
        _accuse(1);
        _refuseEvidence(accused, _wrongPhase(ITaskTypes.Phase.Publishing, ITaskTypes.Phase.Disputing));
        _publishCohort(0);
        address[4] memory strangers = [STRANGER, AGGREGATOR, _voter(0), other];
        for (uint256 i = 0; i < strangers.length; ++i) {
            _refuseEvidence(strangers[i], _notAMember(strangers[i]));
        }
        _refused(
            accused,
            abi.encodeCall(ITaskRounds.submitEvidence, (id, 0, 0, SUBMITTED)),
            abi.encodeWithSelector(ITaskTypes.WrongRound.selector, id, 1, 0)
        );
        uint64 naming = _namingStart();
        vm.warp(naming);
        _refuseEvidence(accused, _over(naming));
        _name(_roundState().accused);
        _refuseEvidence(accused, _wrongPhase(ITaskTypes.Phase.Drawing, ITaskTypes.Phase.Disputing));
    }

    function test_submitEvidence_ofAnEarlierRoundIsRefused() public {
        _toDisputing();
        address hospital = _hospital(_memberOf(1));
        _pass();
        tasks.tick(id);
        _form();
        _commitMembers();
        _fix(Bits.below(MEMBERS));
        _accuse(0);
        _accuse(1);
        _refused(
            hospital,
            abi.encodeCall(ITaskRounds.submitEvidence, (id, 1, 0, SUBMITTED)),
            abi.encodeWithSelector(ITaskTypes.WrongRound.selector, id, 2, 1)
        );
        _submitEvidence(hospital);
    }

    // Naming.

    function test_nameCheaters_refusals() public {
        _toPublishingOf(_masked(_params()));
        _accuse(1);
        uint256 cheaters = uint256(0).with(_memberOf(1));
        _refuseNaming(AGGREGATOR, cheaters, _wrongPhase(ITaskTypes.Phase.Publishing, ITaskTypes.Phase.Disputing));
        _publishCohort(0);
        (uint64 naming, uint64 deadline) = (_namingStart(), tasks.state(id).deadline);
        bytes memory early = abi.encodeWithSelector(ITaskTypes.PhaseNotOver.selector, id, naming);
        _refuseNaming(AGGREGATOR, cheaters, early);
        vm.warp(naming - 1);
        _refuseNaming(AGGREGATOR, cheaters, early);
        vm.warp(naming);
        _refuseNaming(STRANGER, cheaters, abi.encodeWithSelector(ITaskTypes.NotAggregator.selector, STRANGER));
        uint256[3] memory wrong = [0, cheaters.with(_memberOf(0)), cheaters.with(MEMBERS)];
        for (uint256 i = 0; i < wrong.length; ++i) {
            _refuseNaming(AGGREGATOR, wrong[i], abi.encodeWithSelector(ITaskTypes.CheatersInvalid.selector, wrong[i]));
        }
        uint256 state = vm.snapshotState();
        vm.warp(deadline + 1);
        _refuseNaming(AGGREGATOR, cheaters, _over(deadline));
        vm.revertToState(state);
        vm.warp(deadline); // the last second
        vm.expectEmit(address(tasks));
        emit ITaskTypes.CheatersNamed(id, 1, cheaters);
        _name(cheaters);
        vm.assertEq(_roundState().named, cheaters);
        vm.assertEq(_roundState().guilty, 0);
        _refuseNaming(AGGREGATOR, cheaters, _wrongPhase(ITaskTypes.Phase.Drawing, ITaskTypes.Phase.Disputing));
    }

    function test_tick_slashesTheAggregatorThatNamesNobody() public {
        _toDisputing();
        _submitEvidence(_hospital(_memberOf(1)));
        uint64 deadline = tasks.state(id).deadline;
        vm.warp(deadline);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.PhaseNotOver.selector, id, deadline));
        tasks.tick(id);
        vm.warp(deadline + 1);
        vm.expectEmit(address(tasks));
        emit ITaskTypes.Slashed(id, 1, AGGREGATOR, 100e18, ITaskTypes.SlashReason.NotPublished);
        tasks.tick(id);
        _assertVoid(1, ITaskTypes.VoidReason.NotPublished);
        _says(1, AGGREGATOR, ITaskTypes.PayoutReason.NotPublished, 100e18);
        _assertNobodyGuilty(1);
        _assertPhase(ITaskTypes.Phase.Forming);
        vm.assertEq(tasks.state(id).round, 2);
    }

    // Judging.

    /// @dev One cohort is paid as usual. In the other, named hospitals are slashed and the rest is unpaid.
    function test_settle_slashesWhomTheCommitteeFindsToo() public {
        _toDisputing();
        (uint256 paid, uint256 accused) = (_survivors(1, 0), _survivors(1, 1));
        uint256 cheater = _first(accused);
        _nameAndDraw(uint256(0).with(cheater));
        _vote(1, _scores(1_000));
        vm.assertEq(_roundState().mismatched, 1);
        vm.expectEmit(address(tasks));
        emit ITaskTypes.Slashed(id, 1, _hospital(cheater), FALSE_UPLOAD, ITaskTypes.SlashReason.FalseUpload);
        tasks.settle(id, 1);
        _assertSettled(1, 1);
        vm.assertEq(tasks.roundState(id, 1).guilty, uint256(0).with(cheater));
        _sayOf(1, uint256(0).with(cheater), ITaskTypes.PayoutReason.FalseUpload, FALSE_UPLOAD);
        _sayOf(1, accused.without(cheater), ITaskTypes.PayoutReason.NotInSum, 0);
        _sayOf(1, paid, ITaskTypes.PayoutReason.Paid, 0);
        _says(1, _voter(0), ITaskTypes.PayoutReason.Far, 0);
        _says(1, _voter(1), ITaskTypes.PayoutReason.Paid, 0);
        vm.assertEq(_earned(_voter(1)), uint256(100e18) / 3);
        uint256 weight;
        for (uint256 i = 0; i < MEMBERS; ++i) {
            if (paid.has(i)) weight += i + 1;
        }
        vm.assertEq(_earned(AGGREGATOR), 50e18 * weight / 28);
        vm.assertTrue(tasks.state(id).activeHospitals.has(cheater)); // with bond left it goes on
    }

    function test_settle_withoutAnySumPaysTheCommitteeAlone() public {
        _toDisputingAll(_masked(_params()));
        _nameAndSettle(3, 0, _scores(0), 0);
        vm.assertEq(tasks.roundState(id, 1).medians.length, 2);
        _sayOf(1, Bits.below(MEMBERS) & ~uint256(3), ITaskTypes.PayoutReason.NotInSum, 0);
        for (uint256 i = 0; i < VOTERS; ++i) {
            vm.assertEq(_earned(_voter(i)), uint256(100e18) / 3);
        }
        vm.assertEq(tasks.explain(id, 1, AGGREGATOR).whole, 28);
        vm.assertEq(tasks.explain(id, 1, AGGREGATOR).part, 0);
        vm.assertEq(_earned(AGGREGATOR), 0);
        vm.assertEq(_locked(AGGREGATOR, IStaking.Role.Aggregator), 200e18);
        vm.assertEq(tasks.state(id).poolLeft, 1_000e18 - 3 * (uint256(100e18) / 3));
    }

    /// @dev Voters may disagree without decoys and digests, too.
    function test_settle_slashesTheAggregatorWhereMostFindOthers() public {
        _toDisputing();
        _nameAndDraw(uint256(0).with(_memberOf(1)));
        _vote(2, _scores(1_000));
        vm.expectEmit(address(tasks));
        emit ITaskTypes.Slashed(id, 1, AGGREGATOR, 100e18, ITaskTypes.SlashReason.Mismatched);
        tasks.settle(id, 1);
        _assertVoid(1, ITaskTypes.VoidReason.Mismatched);
        _says(1, AGGREGATOR, ITaskTypes.PayoutReason.Mismatched, 100e18);
        _assertNobodyGuilty(1);
        vm.assertEq(_earned(_voter(0)), 0);
    }

    /// @dev The lowest score is an ordinary score if nobody is named.
    function test_revealScores_asksOnlyWhereSomebodyIsNamed() public {
        _toPublishingOf(_masked(_params()));
        _publishCohort(0);
        _drop(1);
        _draw();
        _vote(2, _scores(1_000));
        vm.assertEq(_roundState().mismatched, 0);
    }

    function test_settle_withTooFewJudgesSlashesNobody() public {
        _toDisputingAll(_masked(_params()));
        _nameAndDraw(1);
        uint256 state = vm.snapshotState();
        _score(0, _scores(0));
        _pass();
        tasks.tick(id);
        _assertVoid(1, ITaskTypes.VoidReason.TooFewScores);
        _assertNobodyGuilty(1);

        vm.revertToState(state); // half is no majority, and leaves too few
        int64[] memory against = new int64[](2);
        against[0] = Scores.DOES_NOT_MATCH;
        _score(0, against);
        _score(1, _scores(0));
        vm.prank(_voter(2));
        tasks.standDown(id, 1);
        _reveal(0, against);
        _reveal(1, _scores(0));
        tasks.settle(id, 1);
        _assertVoid(1, ITaskTypes.VoidReason.TooFewScores);
        _assertNobodyGuilty(1);
        vm.assertEq(_locked(AGGREGATOR, IStaking.Role.Aggregator), 200e18);
    }

    /// @dev A slash takes the rest of a bond. A hospital without bond sits out: no round names it again.
    function test_settle_slashesAsFarAsTheBondReaches() public {
        ITaskTypes.TaskParams memory params = _masked(_params());
        (params.rounds, params.harmfulSlashBps) = (3, 7_000);
        _toDisputingAll(params);
        for (uint256 round = 1; round < 3; ++round) {
            if (round > 1) {
                _form();
                _commitMembers();
                _fix(Bits.below(MEMBERS));
                _accuse(0);
                _accuse(1);
            }
            _nameAndDraw(1);
            _vote(0, _scores(0));
            tasks.settle(id, round);
        }
        vm.assertEq(tasks.state(id).activeHospitals, Bits.below(MEMBERS).without(0));
        _form();
        for (uint256 i = 1; i < MEMBERS; ++i) {
            _commit(i);
        }
        _fix(Bits.below(MEMBERS).without(0));
        _accuse(0);
        _accuse(1);
        vm.warp(_namingStart());
        _refuseNaming(AGGREGATOR, 3, abi.encodeWithSelector(ITaskTypes.CheatersInvalid.selector, 3));
        _nameAndDraw(2);
        _vote(0, _scores(0));
        tasks.settle(id, 3);
        _says(1, _hospital(0), ITaskTypes.PayoutReason.FalseUpload, 70e18);
        _says(2, _hospital(0), ITaskTypes.PayoutReason.FalseUpload, 30e18);
        _says(3, _hospital(0), ITaskTypes.PayoutReason.SatOut, 0);
        vm.assertEq(_locked(_hospital(0), IStaking.Role.Hospital), 0);
        vm.assertEq(_locked(_hospital(1), IStaking.Role.Hospital), 30e18);
    }

    // The statistics, which nobody else judges.

    function _toStatisticsDisputing(bool digests) private {
        ITaskTypes.TaskParams memory params = _masked(_params());
        params.digests = digests;
        _toStatisticsOf(params);
        _accuse(0);
        _nameAndDraw(5);
    }

    /// forge-config: default.fuzz.runs = 16
    function test_settle_ofTheStatisticsSlashesAndEndsTheTask(bool digests) public {
        _toStatisticsDisputing(digests);
        _vote(1, _scores(0));
        tasks.settle(id, 0);
        _assertVoid(0, ITaskTypes.VoidReason.NoSums);
        _assertPhase(ITaskTypes.Phase.Ended);
        vm.assertEq(tasks.roundState(id, 0).guilty, 5);
        _sayOf(0, 5, ITaskTypes.PayoutReason.FalseUpload, FALSE_UPLOAD);
        _sayOf(0, Bits.below(MEMBERS) & ~uint256(5), ITaskTypes.PayoutReason.Void, 0);
        _says(0, AGGREGATOR, ITaskTypes.PayoutReason.Void, 0);
        _says(0, _voter(1), ITaskTypes.PayoutReason.Void, 0);
        vm.assertEq(tasks.claimable(OPERATOR), 1_000e18);
        tasks.releaseBond(id, _hospital(0));
        _says(0, _hospital(0), ITaskTypes.PayoutReason.FalseUpload, FALSE_UPLOAD);
    }

    /// forge-config: default.fuzz.runs = 16
    function test_settle_ofTheStatisticsSlashesTheSilentAndTheAggregator(bool digests) public {
        _toStatisticsDisputing(digests);
        int64[] memory against = _scores(Scores.DOES_NOT_MATCH);
        for (uint256 i = 0; i < VOTERS; ++i) {
            _score(i, against);
        }
        _reveal(0, against);
        _reveal(1, against);
        _pass();
        tasks.tick(id);
        _assertVoid(0, ITaskTypes.VoidReason.Mismatched);
        _assertPhase(ITaskTypes.Phase.Ended);
        _assertNobodyGuilty(0);
        _says(0, AGGREGATOR, ITaskTypes.PayoutReason.Mismatched, 100e18);
        _says(0, _voter(2), ITaskTypes.PayoutReason.NotRevealed, 25e18);
    }

    function test_tick_inTheStatisticsEndsTheTask() public {
        _toStatisticsOf(_masked(_params()));
        _accuse(0);
        _pass();
        tasks.tick(id);
        _assertVoid(0, ITaskTypes.VoidReason.NotPublished);
        _assertPhase(ITaskTypes.Phase.Ended);
        _says(0, AGGREGATOR, ITaskTypes.PayoutReason.NotPublished, 100e18);
        _assertNobodyGuilty(0);
    }

    // By digest.

    function test_settle_ofDigests() public {
        ITaskTypes.TaskParams memory params = _masked(_params());
        params.digests = true;
        _toStatisticsOf(params);
        _publishDigest(0, _sumCohort(0, 0));
        _draw();
        _vote(0, _scores(0));
        tasks.settle(id, 0);
        _form();
        _commitMembers();
        _fix(Bits.below(MEMBERS));
        _accuse(0);
        _publishDigest(1, _sumCohort(1, 0));
        uint256 cheaters = _survivors(1, 0);
        _nameAndSettle(cheaters, 1, _scores(1_000), 2);
        _says(1, _voter(0), ITaskTypes.PayoutReason.Far, 0);
    }

    // With decoys.

    /// @dev No decoys are set: there is nothing to disclose, and no test of the committee's scores.
    function test_settle_withDecoysAndWithoutAnySumPaysTheCommittee() public {
        _toDisputingAll(_masked(_decoyParams()));
        _nameAndSettle(4, 1, _constant(0), 0);
        _says(1, _voter(0), ITaskTypes.PayoutReason.Far, 0);
        _says(1, _voter(1), ITaskTypes.PayoutReason.Paid, 0);
        vm.assertEq(_earned(_voter(1)), uint256(100e18) / 3);
        vm.assertEq(_earned(AGGREGATOR), 0);
    }

    /// @dev One cohort is published sign-flipped, one is accused.
    function _toDecoyDisclosing() private returns (uint256 cheater) {
        _toPublishingOf(_masked(_decoyParams()));
        _flip(1);
        _setDecoys();
        _publish(0, 0, _publishedHash(0, 0, true));
        _accuse(1);
        cheater = _memberOf(1);
        _nameAndDraw(uint256(0).with(cheater));
        _vote(0, _ballot(GOOD, BAD));
        tasks.settle(id, 1);
        _assertPhase(ITaskTypes.Phase.Disclosing);
        vm.assertEq(_roundState().guilty, 0); // not before the rest of the round is known
    }

    function test_settle_withDecoysSlashesOnceAllIsDisclosed() public {
        uint256 cheater = _toDecoyDisclosing();
        uint256 accused = _survivors(1, 1);
        _discloseCohort(0);
        tasks.settle(id, 1);
        _assertSettled(1, 1);
        _sayOf(1, uint256(0).with(cheater), ITaskTypes.PayoutReason.FalseUpload, FALSE_UPLOAD);
        _sayOf(1, accused.without(cheater), ITaskTypes.PayoutReason.NotInSum, 0);
        _sayOf(1, Bits.below(MEMBERS) & ~accused, ITaskTypes.PayoutReason.Paid, 0);
    }

    function test_tick_withDecoysNotDisclosedSlashesTheAggregatorAlone() public {
        _toDecoyDisclosing();
        _pass();
        tasks.tick(id);
        _assertVoid(1, ITaskTypes.VoidReason.NotDisclosed);
        _says(1, AGGREGATOR, ITaskTypes.PayoutReason.NotDisclosed, 100e18);
        _assertNobodyGuilty(1);
    }

    // Any behaviour.

    /// @dev Over whole tasks `explain` and events agree on every account and round, nobody is slashed
    ///      twice in a round, and pool and bonds lose exactly that.
    /// forge-config: default.fuzz.runs = 48
    function test_explain_agreesWithTheEventsWhateverIsAccused(uint256 entropy) public {
        _entropy = entropy;
        ITaskTypes.TaskParams memory params = _masked(_choose(2) == 0 ? _params() : _decoyParams());
        params.harmfulSlashBps = uint16(_choose(10_001));
        _propose(params);
        _joinMembers();
        vm.recordLogs();
        for (uint256 steps = 0; tasks.state(id).phase != ITaskTypes.Phase.Ended; ++steps) {
            vm.assertLe(steps, 9 * 3); // phases of a round, rounds
            _step(tasks.state(id).phase);
        }
        _assertExplained(params);
    }

    function _step(ITaskTypes.Phase phase) private {
        uint256 round = _round();
        if (phase == ITaskTypes.Phase.Forming) _form();
        else if (phase == ITaskTypes.Phase.Drawing) _draw();
        else if (phase == ITaskTypes.Phase.Committing) _commitSome();
        else if (phase == ITaskTypes.Phase.Uploading) _fixSome();
        else if (phase == ITaskTypes.Phase.Publishing) _publishSome();
        else if (phase == ITaskTypes.Phase.Disputing) _disputeSome();
        else if (phase == ITaskTypes.Phase.Scoring) _scoreSome();
        else if (phase == ITaskTypes.Phase.Revealing) _revealSome();
        else if (phase == ITaskTypes.Phase.Settling) tasks.settle(id, round);
        else if (_choose(8) > 0) _openAll();
        if (tasks.state(id).phase != phase || _round() != round) return;
        if (phase == ITaskTypes.Phase.Disclosing && _roundState().summedCohorts == _roundState().viableCohorts) {
            return tasks.settle(id, round);
        }
        _pass();
        tasks.tick(id);
    }

    function _commitSome() private {
        uint256 members = _roundState().members;
        for (uint256 i = 0; i < MEMBERS; ++i) {
            if (members.has(i) && _choose(24) > 0) _commit(i);
        }
    }

    /// @dev All hospitals of a cohort, or one less if that leaves enough.
    function _fixSome() private {
        ITaskTypes.RoundState memory round = _roundState();
        uint256 survivors;
        for (uint256 cohort = 0; cohort < round.cohorts; ++cohort) {
            if (!round.viableCohorts.has(cohort)) continue;
            uint256 members = tasks.cohortMembers(id, _round(), cohort);
            uint256 present = members & round.committed;
            bool spares = present.count() > 3 && 3 * (present.count() - 1) >= 2 * members.count();
            survivors |= spares && _choose(3) == 0 ? present.without(_first(present)) : present;
        }
        _fix(survivors);
    }

    function _publishSome() private {
        bool hasDecoys = _round() > 0 && tasks.params(id).decoys;
        if (hasDecoys && _choose(16) > 0) _setDecoys();
        else if (hasDecoys) return;
        uint256 cohorts = _roundState().viableCohorts;
        for (uint256 cohort = 0; cohorts >> cohort != 0; ++cohort) {
            if (!cohorts.has(cohort)) continue;
            uint256 choice = _choose(_round() == 0 ? 16 : 5);
            if (choice == 0) _drop(cohort);
            else if (choice <= 2) _accuse(cohort);
            else if (hasDecoys) _publish(cohort, 0, _publishedHash(cohort, 0, _isFlipped(cohort)));
            else _publishCohort(cohort);
        }
    }

    function _disputeSome() private {
        ITaskTypes.RoundState memory round = _roundState();
        uint256 accused = round.accused;
        for (uint256 step = 0; step < 2; ++step) {
            for (uint256 i = 0; i < MEMBERS; ++i) {
                if ((accused & round.survivors).has(i) && _choose(2) == 0) _submitEvidence(_hospital(i));
            }
            vm.warp(block.timestamp + WINDOW);
        }
        uint256 named = accused & _choose(1 << MEMBERS);
        if (named != 0) _name(named);
    }

    function _scoreSome() private {
        for (uint256 i = 0; i < VOTERS; ++i) {
            if (!tasks.state(id).activeVoters.has(i)) continue;
            if (_choose(16) > 0 && _wins(i)) _score(i, _opinion(i));
        }
    }

    function _revealSome() private {
        for (uint256 i = 0; i < VOTERS; ++i) {
            if (_roundState().seated.has(i) && _choose(16) > 0) _reveal(i, _opinion(i));
        }
    }

    /// @dev The same ballot for commitment and reveal. All voters agree, or one or two do not.
    function _opinion(uint256 voter) private view returns (int64[] memory scores) {
        uint256 mood = uint256(_roundState().seatSeed) % 6;
        bool hasDecoys = _round() > 0 && tasks.params(id).decoys;
        int64 score = mood == 0 ? -int64(2_000) : int64(2_000);
        scores = hasDecoys ? _ballot(score, -3_000) : _scores(score);
        if (mood == 1 && voter == 0 || mood == 2 && voter < 2) scores[0] = Scores.DOES_NOT_MATCH;
    }

    struct Taken {
        uint256 rewards;
        uint256 slashed;
        uint256 slashes;
    }

    mapping(uint256 round => mapping(address account => Taken)) private _taken;

    function _assertExplained(ITaskTypes.TaskParams memory params) private {
        Log[] memory logs = vm.getRecordedLogs();
        uint256 paid;
        for (uint256 i = 0; i < logs.length; ++i) {
            if (logs[i].emitter != address(tasks)) continue;
            if (logs[i].topics[0] == ITaskTypes.TaskEnded.selector) {
                (, paid) = abi.decode(logs[i].data, (uint256, uint256)); // to nobody
            }
            if (logs[i].topics.length != 4) continue;
            Taken storage taken = _taken[uint256(logs[i].topics[2])][address(uint160(uint256(logs[i].topics[3])))];
            if (logs[i].topics[0] == ITaskTypes.Rewarded.selector) {
                taken.rewards += abi.decode(logs[i].data, (uint256));
            } else if (logs[i].topics[0] == ITaskTypes.Slashed.selector) {
                (uint256 amount,) = abi.decode(logs[i].data, (uint256, uint8));
                taken.slashed += amount;
                ++taken.slashes;
            }
        }
        paid += _explained(AGGREGATOR, IStaking.Role.Aggregator, params.aggregatorBond);
        for (uint256 i = 0; i < MEMBERS; ++i) {
            paid += _explained(_hospital(i), IStaking.Role.Hospital, params.hospitalBond);
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            paid += _explained(_voter(i), IStaking.Role.Voter, params.voterBond);
        }
        vm.assertEq(paid + tasks.claimable(OPERATOR), params.pool);
    }

    function _explained(address node, IStaking.Role role, uint256 bond) private view returns (uint256 paid) {
        for (uint256 round = 0; round <= tasks.params(id).rounds; ++round) {
            ITaskTypes.Payout memory payout = tasks.explain(id, round, node);
            Taken memory taken = _taken[round][node];
            vm.assertEq(payout.reward, taken.rewards);
            vm.assertEq(payout.slash, taken.slashed);
            vm.assertLe(taken.slashes, 1);
            paid += payout.reward;
            bond -= payout.slash;
        }
        vm.assertEq(_locked(node, role), bond);
    }

    function _choose(uint256 choices) private returns (uint256) {
        _entropy = uint256(keccak256(abi.encode(_entropy)));
        return _entropy % choices;
    }
}
