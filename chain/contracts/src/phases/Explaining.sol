// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskSettlement} from "../interfaces/ITaskSettlement.sol";
import {Slashes} from "../libraries/Slashes.sol";
import {Verdicts} from "../libraries/Verdicts.sol";
import {Bond, Membership, Task} from "../types/Task.sol";
import {TaskBase} from "./TaskBase.sol";

/// @title Afterwards: what a round paid and slashed, and why, by the very arithmetic that settled it.
abstract contract Explaining is TaskBase, ITaskSettlement {
    using Slashes for Bond;

    /// @inheritdoc ITaskSettlement
    function explain(uint256 taskId, uint256 number, address account) external view returns (Payout memory payout) {
        Task storage task = _known(taskId);
        Membership memory member = task.memberships[account];
        if (!member.joined) {
            payout.reason = PayoutReason.Stranger;
        } else if (task.rounds[number].outcome == Outcome.Pending) {
            payout.role = member.role; // and `NotSettled`
        } else {
            payout = Verdicts.ofMember(task, Verdicts.read(task, number), member);
            payout.slash = _taken(task, number, member, payout.reason);
        }
    }

    function _taken(Task storage task, uint256 number, Membership memory member, PayoutReason reason)
        private
        view
        returns (uint256)
    {
        (bool isFault, SlashReason fault) = Slashes.fault(reason);
        if (!isFault) return 0;
        (, uint256 full) = Slashes.rule(task.params, fault);
        (, Bond storage bond) = _bondOf(task, member.role, member.index);
        return bond.taken(full, number);
    }
}
