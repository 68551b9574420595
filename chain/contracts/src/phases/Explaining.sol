// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskSettlement} from "../interfaces/ITaskSettlement.sol";
import {Verdicts} from "../libraries/Verdicts.sol";
import {Membership, Task} from "../types/Task.sol";
import {Slashing} from "./Slashing.sol";

/// @title Rewards and slashes of a past round, with their reasons, by the arithmetic that settled it.
abstract contract Explaining is Slashing, ITaskSettlement {
    /// @inheritdoc ITaskSettlement
    function explain(uint256 taskId, uint256 number, address account) external view returns (Payout memory payout) {
        Task storage task = _known(taskId);
        Membership memory member = task.memberships[account];
        if (!member.joined) {
            payout.reason = PayoutReason.Stranger;
        } else if (task.rounds[number].outcome == Outcome.Pending) {
            payout.role = member.role; // the reason is `NotSettled`, the first
        } else {
            payout = Verdicts.ofMember(task, Verdicts.read(task, number), member.role, member.index);
            payout.slash = _slashed(task, number, member.role, member.index, payout.reason);
        }
    }
}
