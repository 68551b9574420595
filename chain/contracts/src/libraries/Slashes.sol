// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

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
        if (reason == ITaskTypes.SlashReason.HarmfulCohort) {
            return (IStaking.Role.Hospital, Payouts.portion(p.hospitalBond, p.harmfulSlashBps));
        }
        if (reason == ITaskTypes.SlashReason.NotRevealed) {
            return (IStaking.Role.Voter, Payouts.portion(p.voterBond, p.notRevealedSlashBps));
        }
        return (IStaking.Role.Aggregator, Payouts.portion(p.aggregatorBond, p.notPublishedSlashBps));
    }

    function note(Bond storage bond, uint256 burnt, uint256 round) internal {
        bond.left -= uint128(burnt);
        bond.lastSlash = uint112(burnt); // stake is counted in 96 bits
        bond.lastRound = uint16(round);
    }

    /// @notice What a fault in `round` took: `full`, but for the bond's last slash, which took what was left; nothing
    ///         from then on.
    /// @dev One role is slashed for one fault, so that all its slashes but the last are of one size.
    function taken(Bond storage bond, uint256 full, uint256 round) internal view returns (uint256) {
        if (round < bond.lastRound) return full;
        return round == bond.lastRound ? bond.lastSlash : 0;
    }
}
