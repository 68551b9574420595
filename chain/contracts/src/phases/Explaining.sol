// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../interfaces/IStaking.sol";
import {ITaskRegistry} from "../interfaces/ITaskRegistry.sol";
import {Bits} from "../libraries/Bits.sol";
import {Slashes} from "../libraries/Slashes.sol";
import {Verdicts} from "../libraries/Verdicts.sol";
import {Bond, Membership, Round, Task} from "../types/Task.sol";
import {TaskBase} from "./TaskBase.sol";

/// @title Afterwards: what a round paid and slashed, and why, by the very arithmetic that settled it.
abstract contract Explaining is TaskBase, ITaskRegistry {
    using Bits for uint256;
    using Slashes for Bond;

    /// @inheritdoc ITaskRegistry
    function explain(uint256 taskId, uint256 number, address account) external view returns (Payout memory payout) {
        Task storage task = _known(taskId);
        Round storage round = task.rounds[number];
        Membership memory member = task.memberships[account];
        if (!member.joined) {
            payout.reason = PayoutReason.Stranger;
        } else if (round.outcome == Outcome.Pending) {
            payout.role = member.role; // and `NotSettled`
        } else if (round.outcome == Outcome.Void) {
            payout = _ofVoid(task, round, number, member);
        } else if (number == 0) {
            payout = _ofUnpaid(task, number, member, PayoutReason.Statistics);
        } else {
            payout = _ofSettled(task, round, number, member);
        }
        payout.slash = _taken(task, number, member, payout.reason);
    }

    function _ofSettled(Task storage task, Round storage round, uint256 number, Membership memory member)
        private
        view
        returns (Payout memory)
    {
        Verdicts.Verdict memory verdict = Verdicts.judge(task, number, round.budget);
        if (member.role == IStaking.Role.Hospital) return Verdicts.ofHospital(task, verdict, member.index);
        if (member.role == IStaking.Role.Voter) return Verdicts.ofVoter(task, verdict, member.index);
        return Verdicts.ofAggregator(task, verdict);
    }

    function _ofVoid(Task storage task, Round storage round, uint256 number, Membership memory member)
        private
        view
        returns (Payout memory payout)
    {
        payout = _ofUnpaid(task, number, member, PayoutReason.Void);
        if (member.role != IStaking.Role.Aggregator) return payout;
        VoidReason reason = round.voidReason;
        if (reason == VoidReason.SurvivorsNotFixed || reason == VoidReason.NotPublished) {
            payout.reason = PayoutReason.NotPublished;
        } else if (reason == VoidReason.NotOpened) {
            payout.reason = PayoutReason.NotOpened;
        } else if (reason == VoidReason.Mismatched) {
            payout.reason = PayoutReason.Mismatched;
        }
    }

    /// @dev Slashed all the same: who held a seat and kept silent, if there were seats enough to reveal, and whose upload
    ///      is missing from a sum.
    function _ofUnpaid(Task storage task, uint256 number, Membership memory member, PayoutReason otherwise)
        private
        view
        returns (Payout memory payout)
    {
        Round storage round = task.rounds[number];
        (payout.role, payout.reason) = (member.role, otherwise);
        if (member.role == IStaking.Role.Voter && round.seated.count() >= task.params.minReveals) {
            return Verdicts.silent(round, member.index, otherwise);
        }
        if (member.role != IStaking.Role.Hospital) return payout;
        if (round.guilty.has(member.index)) payout.reason = PayoutReason.FalseUpload;
        else if (Verdicts.withheld(task, number).has(member.index)) payout.reason = PayoutReason.Withheld;
    }

    function _taken(Task storage task, uint256 number, Membership memory member, PayoutReason reason)
        private
        view
        returns (uint256)
    {
        SlashReason fault;
        if (reason == PayoutReason.Harmful) fault = SlashReason.HarmfulCohort;
        else if (reason == PayoutReason.Withheld) fault = SlashReason.WithheldUpload;
        else if (reason == PayoutReason.FalseUpload) fault = SlashReason.FalseUpload;
        else if (reason == PayoutReason.NotRevealed) fault = SlashReason.NotRevealed;
        else if (reason == PayoutReason.FailedCanary) fault = SlashReason.FailedCanary;
        else if (reason == PayoutReason.NotPublished) fault = SlashReason.NotPublished;
        else if (reason == PayoutReason.NotOpened) fault = SlashReason.NotOpened;
        else if (reason == PayoutReason.Mismatched) fault = SlashReason.Mismatched;
        else return 0;
        (, uint256 full) = Slashes.rule(task.params, fault);
        (, Bond storage bond) = _bondOf(task, member.role, member.index);
        return bond.taken(full, number);
    }
}
