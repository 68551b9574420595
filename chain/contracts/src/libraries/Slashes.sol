// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {IStaking} from "../interfaces/IStaking.sol";
import {ITaskTypes} from "../interfaces/ITaskTypes.sol";
import {Bond} from "../types/Task.sol";
import {Payouts} from "./Payouts.sol";

/// @title What is slashed for what: the one table, and the record that a bond keeps of it.
library Slashes {
    /// @notice Whose bond answers for a fault, and with how much of it, as far as that much is left.
    function rule(ITaskTypes.TaskParams storage p, ITaskTypes.SlashReason reason)
        internal
        view
        returns (IStaking.Role role, uint256 amount)
    {
        if (reason == ITaskTypes.SlashReason.HarmfulCohort || reason == ITaskTypes.SlashReason.FalseUpload) {
            return (IStaking.Role.Hospital, Payouts.portion(p.hospitalBond, p.harmfulSlashBps));
        }
        if (reason == ITaskTypes.SlashReason.WithheldUpload) {
            return (IStaking.Role.Hospital, _withheld(p));
        }
        if (reason == ITaskTypes.SlashReason.NotRevealed) {
            return (IStaking.Role.Voter, Payouts.portion(p.voterBond, p.notRevealedSlashBps));
        }
        if (reason == ITaskTypes.SlashReason.FailedCanary) {
            return (IStaking.Role.Voter, Payouts.portion(p.voterBond, p.failedCanarySlashBps));
        }
        return (IStaking.Role.Aggregator, Payouts.portion(p.aggregatorBond, p.notPublishedSlashBps));
    }

    /// @dev Nobody can tell on chain whether the hospital kept its upload or the aggregator left it out. The aggregator
    ///      loses the fee for the hospital's weight; the hospital loses no more than that of an average one. So neither
    ///      can hurt the other this way for less.
    function _withheld(ITaskTypes.TaskParams storage p) private view returns (uint256) {
        uint256 fee = Payouts.portion(Payouts.roundPart(p.pool, p.rounds, p.pool), p.aggregatorShareBps);
        return Math.min(Payouts.portion(p.hospitalBond, p.withheldSlashBps), fee / p.maxHospitals);
    }

    /// @notice The fault behind a reason, where it is one.
    function fault(ITaskTypes.PayoutReason reason) internal pure returns (bool isOne, ITaskTypes.SlashReason) {
        if (reason == ITaskTypes.PayoutReason.Harmful) return (true, ITaskTypes.SlashReason.HarmfulCohort);
        if (reason == ITaskTypes.PayoutReason.Withheld) return (true, ITaskTypes.SlashReason.WithheldUpload);
        if (reason == ITaskTypes.PayoutReason.FalseUpload) return (true, ITaskTypes.SlashReason.FalseUpload);
        if (reason == ITaskTypes.PayoutReason.NotRevealed) return (true, ITaskTypes.SlashReason.NotRevealed);
        if (reason == ITaskTypes.PayoutReason.FailedCanary) return (true, ITaskTypes.SlashReason.FailedCanary);
        if (reason == ITaskTypes.PayoutReason.NotPublished) return (true, ITaskTypes.SlashReason.NotPublished);
        if (reason == ITaskTypes.PayoutReason.NotOpened) return (true, ITaskTypes.SlashReason.NotOpened);
        return (reason == ITaskTypes.PayoutReason.Mismatched, ITaskTypes.SlashReason.Mismatched);
    }

    function note(Bond storage bond, uint256 burnt, uint256 round) internal {
        bond.left -= uint128(burnt);
        bond.lastSlash = uint112(burnt); // stake is counted in 96 bits
        bond.lastRound = uint16(round);
    }

    /// @notice What a fault in `round` took: `full`, but for the bond's last slash, which took what was left; nothing
    ///         from then on.
    /// @dev Nobody is slashed twice in a round, and every slash but a bond's last is a full one.
    function taken(Bond storage bond, uint256 full, uint256 round) internal view returns (uint256) {
        if (round < bond.lastRound) return full;
        return round == bond.lastRound ? bond.lastSlash : 0;
    }
}
