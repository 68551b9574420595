// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../src/interfaces/IStaking.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Bits} from "../src/libraries/Bits.sol";
import {Fixture} from "./utils/Fixture.sol";

/// @notice Hospitals that committed and whose upload is in no sum.
contract WithholdingTest is Fixture {
    using Bits for uint256;

    function _toUploadingOf(uint16 minCohortSize, uint16 withheldSlashBps) private {
        ITaskTypes.TaskParams memory params = _params();
        (params.cohorts, params.minCohortSize, params.withheldSlashBps) = (2, minCohortSize, withheldSlashBps);
        _propose(params);
        _joinAll();
        _runTraining();
        _form();
        _commitAll();
    }

    function _says(uint256 hospital, ITaskTypes.PayoutReason reason, uint256 slash) private view {
        ITaskTypes.Payout memory payout = tasks.explain(id, 1, _hospital(hospital));
        vm.assertEq(uint256(payout.reason), uint256(reason));
        vm.assertEq(payout.slash, slash);
        vm.assertEq(_locked(_hospital(hospital), IStaking.Role.Hospital), 100e18 - slash);
    }

    function _memberOf(uint256 cohort) private view returns (uint256 member) {
        uint256 members = tasks.cohortMembers(id, 1, cohort);
        while (!members.has(member)) ++member;
    }

    function test_fixSurvivors_slashesWhoIsMissingFromACohortThatStays() public {
        _toUploadingOf(1, 300);
        uint256 missing = _memberOf(0);
        _fix(uint256(15).without(missing));
        _publishAll();
        _draw();
        _scoreAll(1_000);
        vm.expectEmit(address(tasks));
        emit ITaskTypes.Slashed(id, 1, _hospital(missing), 3e18, ITaskTypes.SlashReason.WithheldUpload);
        tasks.settle(id, 1);
        _says(missing, ITaskTypes.PayoutReason.Withheld, 3e18);
        // The aggregator loses the fee for its weight: 50 tokens for 10 in all.
        vm.assertEq(_earned(AGGREGATOR), 50e18 * (10 - (missing + 1)) / 10);
        _assertConserved();
    }

    /// @dev Nobody can hurt the other for less: the fee of a round over the most hospitals is 12.5 tokens.
    function test_fixSurvivors_takesNoMoreThanAnAverageUploadIsWorth() public {
        _toUploadingOf(1, 10_000);
        uint256 missing = _memberOf(1);
        _fix(uint256(15).without(missing));
        _publishAll();
        _draw();
        _scoreAll(1_000);
        tasks.settle(id, 1);
        vm.assertEq(_locked(_hospital(missing), IStaking.Role.Hospital), 100e18 - 12.5e18);
    }

    function test_fixSurvivors_blamesNobodyOfACohortThatFalls() public {
        _toUploadingOf(2, 300);
        uint256 fallen = tasks.cohortMembers(id, 1, 0);
        _fix(15 & ~fallen); // as it must, with one of the two missing
        _publishAll();
        _draw();
        _scoreAll(1_000);
        tasks.settle(id, 1);
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            if (fallen.has(i)) _says(i, ITaskTypes.PayoutReason.NotInSum, 0);
        }
    }

    function test_explain_namesItInAVoidRound() public {
        _toUploadingOf(1, 300);
        uint256 missing = _memberOf(0);
        _fix(uint256(15).without(missing));
        _pass();
        tasks.tick(id);
        _assertPhase(ITaskTypes.Phase.Settling);
        vm.prank(STRANGER);
        tasks.settle(id, 1);
        _assertVoid(1, ITaskTypes.VoidReason.NotPublished);
        _says(missing, ITaskTypes.PayoutReason.Withheld, 3e18);
        _says(_memberOf(1), ITaskTypes.PayoutReason.Void, 0);
        _assertConserved();
    }

    function test_explain_namesItInTheStatistics() public {
        ITaskTypes.TaskParams memory params = _params();
        params.withheldSlashBps = 300;
        _propose(params);
        _joinAll();
        _commitAll();
        _fix(7);
        _publishAll();
        _assertPhase(ITaskTypes.Phase.Settling);
        vm.assertEq(uint256(tasks.explain(id, 0, _hospital(3)).reason), uint256(ITaskTypes.PayoutReason.NotSettled));
        tasks.settle(id, 0);
        ITaskTypes.Payout memory payout = tasks.explain(id, 0, _hospital(3));
        vm.assertEq(uint256(payout.reason), uint256(ITaskTypes.PayoutReason.Withheld));
        vm.assertEq(payout.slash, 3e18);
        vm.assertEq(uint256(tasks.explain(id, 0, _hospital(0)).reason), uint256(ITaskTypes.PayoutReason.Statistics));
    }

    function test_explain_blamesNobodyBeforeSurvivorsAreFixed() public {
        _toUploadingOf(1, 300);
        _pass();
        tasks.tick(id);
        _says(0, ITaskTypes.PayoutReason.Void, 0);
    }
}
