// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {IStaking} from "../interfaces/IStaking.sol";
import {Bits} from "../libraries/Bits.sol";
import {Payouts} from "../libraries/Payouts.sol";
import {Bond, Task} from "../types/Task.sol";
import {TaskBase} from "./TaskBase.sol";

/// @title Slashes: the table of their rates, and the record that each bond keeps of its last one.
/// @dev No node is slashed twice in a round, and every slash but a bond's last is a full one.
abstract contract Slashing is TaskBase {
    using Bits for uint256;

    /// @dev The table. To add a slash, name it in `PayoutReason` and `SlashReason`, and give it a line here.
    function _rate(TaskParams storage p, PayoutReason reason) private view returns (SlashReason fault, uint256 bps) {
        if (reason == PayoutReason.Harmful) return (SlashReason.HarmfulCohort, p.harmfulSlashBps);
        if (reason == PayoutReason.Withheld) return (SlashReason.WithheldUpload, p.withheldSlashBps);
        if (reason == PayoutReason.FalseUpload) return (SlashReason.FalseUpload, p.harmfulSlashBps);
        if (reason == PayoutReason.NotRevealed) return (SlashReason.NotRevealed, p.notRevealedSlashBps);
        if (reason == PayoutReason.FailedDecoy) return (SlashReason.FailedDecoy, p.failedDecoySlashBps);
        if (reason == PayoutReason.NotPublished) return (SlashReason.NotPublished, p.notPublishedSlashBps);
        if (reason == PayoutReason.NotDisclosed) return (SlashReason.NotDisclosed, p.notPublishedSlashBps);
        if (reason == PayoutReason.Mismatched) return (SlashReason.Mismatched, p.notPublishedSlashBps);
    }

    /// @dev The amount of a full slash. It is zero if the payout reason is not a fault.
    function _penalty(TaskParams storage p, IStaking.Role role, PayoutReason reason)
        private
        view
        returns (SlashReason fault, uint256 full)
    {
        uint256 bps;
        (fault, bps) = _rate(p, reason);
        if (bps == 0) return (fault, 0);
        uint256 bond = p.aggregatorBond;
        if (role == IStaking.Role.Hospital) bond = p.hospitalBond;
        if (role == IStaking.Role.Voter) bond = p.voterBond;
        if (fault != SlashReason.WithheldUpload) return (fault, Payouts.portion(bond, bps));
        // Nobody can tell on chain if the hospital kept its upload or the aggregator left it out. The aggregator loses
        // the fee for the hospital's weight; the hospital loses at most the fee for an average one. So neither can hurt
        // the other this way for less.
        uint256 fee = Payouts.portion(Payouts.roundPart(p.pool, p.rounds, p.pool), p.aggregatorShareBps);
        return (fault, Payouts.penalty(bond, bps, fee / p.maxHospitals));
    }

    /// @dev Burns stake of a node for the fault behind a payout reason, if it is one.
    /// @param index of the node in its role; 0 for the aggregator.
    function _slash(uint256 taskId, Task storage task, IStaking.Role role, uint256 index, PayoutReason reason)
        internal
    {
        (SlashReason fault, uint256 full) = _penalty(task.params, role, reason);
        if (full == 0) return;
        (address node, Bond storage bond) = _bondOf(task, role, index);
        uint256 amount = Math.min(full, bond.left);
        if (amount == 0) return;
        uint256 burnt = staking.slash(node, role, amount);
        bond.left -= uint128(burnt);
        bond.lastSlash = uint112(burnt); // Staking counts stake in 96 bits
        bond.lastRound = task.state.round;
        emit Slashed(taskId, task.state.round, node, burnt, fault);
        if (bond.left > 0) return;
        if (role == IStaking.Role.Hospital) task.state.activeHospitals = task.state.activeHospitals.without(index);
        else if (role == IStaking.Role.Voter) task.state.activeVoters = task.state.activeVoters.without(index);
    }

    /// @dev The amount that `_slash` burnt in a past round. The bond's last slash took the remainder; earlier ones were
    ///      full, and later ones are zero.
    function _slashed(Task storage task, uint256 number, IStaking.Role role, uint256 index, PayoutReason reason)
        internal
        view
        returns (uint256)
    {
        (, uint256 full) = _penalty(task.params, role, reason);
        (, Bond storage bond) = _bondOf(task, role, index);
        if (full == 0 || number < bond.lastRound) return full;
        return number == bond.lastRound ? bond.lastSlash : 0;
    }
}
