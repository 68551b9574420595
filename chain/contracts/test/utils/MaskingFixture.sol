// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../../src/interfaces/IStaking.sol";
import {ITaskTypes} from "../../src/interfaces/ITaskTypes.sol";
import {Bits} from "../../src/libraries/Bits.sol";
import {Fixture} from "./Fixture.sol";

/// @notice Masked tasks with hospitals for two cohorts, of four and of three.
abstract contract MaskingFixture is Fixture {
    uint256 internal constant MEMBERS = 7;

    function _masked(ITaskTypes.TaskParams memory params) internal pure returns (ITaskTypes.TaskParams memory) {
        (params.masked, params.minCohortSize, params.minHospitals, params.maxHospitals) = (true, 3, 3, uint16(MEMBERS));
        params.withheldSlashBps = 300;
        return params;
    }

    function _joinMembers() internal {
        _joinAggregator();
        for (uint256 i = 0; i < MEMBERS; ++i) {
            if (i >= HOSPITALS) _stake(_hospital(i), IStaking.Role.Hospital);
            _joinHospital(i);
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            _joinVoter(i);
        }
    }

    function _commitMembers() internal {
        for (uint256 i = 0; i < MEMBERS; ++i) {
            _commit(i);
        }
    }

    function _drop(uint256 cohort) internal {
        uint256 round = _round();
        vm.prank(AGGREGATOR);
        tasks.dropCohort(id, round, cohort);
    }

    function _publishCohort(uint256 cohort) internal {
        _publish(cohort, 0, _sumCohort(cohort, 0));
    }

    function _toStatisticsOf(ITaskTypes.TaskParams memory params) internal {
        _propose(params);
        _joinMembers();
        _commitMembers();
        _fix(Bits.below(MEMBERS));
    }

    function _toUploadingOf(ITaskTypes.TaskParams memory params) internal {
        _toStatisticsOf(params);
        _publishAll();
        _form();
        _commitMembers();
    }

    function _toPublishingOf(ITaskTypes.TaskParams memory params) internal {
        _toUploadingOf(params);
        _fix(Bits.below(MEMBERS));
    }
}
