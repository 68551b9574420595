// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {IStaking} from "../interfaces/IStaking.sol";
import {ITaskSettlement} from "../interfaces/ITaskSettlement.sol";
import {Bits} from "../libraries/Bits.sol";
import {Ranks} from "../libraries/Ranks.sol";
import {Verdicts} from "../libraries/Verdicts.sol";
import {Round, SettlingStage, Task} from "../types/Task.sol";
import {Concluding} from "./Concluding.sol";

/// @title The settlement of a round: judgement, rewards and slashes.
/// @notice It goes by pages, so that a transaction can settle a part of any round, however many nodes and cohorts it
///         has. Most rounds take one page, in the transaction that settles them. Further pages wait in phase `Settling`
///         for anybody's next call. All pages use the state of the round when it was decided.
abstract contract Settling is Concluding, ITaskSettlement {
    using Bits for uint256;

    /// @dev A transaction has 16.7 million gas (EIP-7825). A page ends by the maximal cost of its steps, as measured
    ///      with wiped pools and vesting rewards. It does not look at the gas left: an estimate of gas would then find
    ///      the smallest page.
    uint256 private constant PAGE_GAS = 9_000_000;
    uint256 private constant GAS_PER_NODE = 90_000; // to slash or pay one
    uint256 private constant GAS_PER_SCORE = 4_000; // to read and sort one
    uint256 private constant SCORES_PER_COHORT = 2; // one of the sum, one of its decoy

    /// @dev Rewards of a page. One call hands them over to Staking, where they vest.
    struct Page {
        uint256 gasUsed; // upper bound
        IStaking.Reward[] entries; // only the first `count` are in use
        uint256 count;
        uint256 total;
    }

    /// @dev Results of the cohorts that are judged so far.
    struct Judged {
        int64[] medians;
        uint256 accepted;
        uint256 tests;
        uint256 gain;
    }

    /// @inheritdoc ITaskSettlement
    function settle(uint256 taskId, uint256 number) public {
        Phase phase = _known(taskId).state.phase;
        if (phase != Phase.Disclosing && phase != Phase.Settling) phase = Phase.Revealing;
        (Task storage task, Round storage round) = _in(taskId, phase, number);
        if (phase == Phase.Settling) return _close(taskId, task);
        if (phase == Phase.Disclosing) {
            if (!_isSummed(round)) revert CohortsNotDisclosed(round.summedCohorts, round.viableCohorts);
        } else if (round.revealed != round.seated) {
            _requireOver(taskId, task);
        }
        _decide(taskId, task, round);
    }

    /// @notice Ends the late phases at their deadlines. `Tasks.tick` delegates to it.
    function tick(uint256 taskId) external {
        Task storage task = _known(taskId);
        if (task.state.phase == Phase.Settling) return _close(taskId, task);
        _requireOver(taskId, task);
        _payBounty(taskId, task);
        Round storage round = task.rounds[task.state.round];
        bool isLate = task.state.phase == Phase.Disclosing && !_isSummed(round);
        if (isLate) _concludeAtFault(taskId, task, VoidReason.NotDisclosed);
        else _decide(taskId, task, round);
    }

    function _decide(uint256 taskId, Task storage task, Round storage round) private {
        (uint256 revealed, uint256 mismatched) = (round.revealed.count(), round.mismatched.count());
        uint256 wanted = task.params.minReveals;
        if (revealed >= wanted && 2 * mismatched > revealed) {
            return _concludeAtFault(taskId, task, VoidReason.Mismatched);
        }
        if (revealed - mismatched < wanted) return _conclude(taskId, task, VoidReason.TooFewScores);
        if (!_isSummed(round)) return _startGracedPhase(taskId, task, Phase.Disclosing, task.params.publishWindow);
        round.guilty = round.named;
        // The statistics round has one cohort. If cheaters are named for it, it has no sum.
        bool isLost = task.state.round == 0 && round.named != 0;
        _conclude(taskId, task, isLost ? VoidReason.NoSums : VoidReason.None);
    }

    /// @dev True if the contract has compared every sum with its blob. Without decoys publication does that.
    function _isSummed(Round storage round) private view returns (bool) {
        return round.summedCohorts == round.viableCohorts;
    }

    /// @dev Settles one page.
    function _close(uint256 taskId, Task storage task) internal override {
        uint256 number = task.state.round;
        Round storage round = task.rounds[number];
        bool isPaid = number != 0 && round.voidReason == VoidReason.None;
        (SettlingStage stage, uint256 next) = (round.stage, round.next);
        Page memory page;
        if (stage == SettlingStage.Cohorts) {
            if (isPaid) next = _judge(task, round, number, next, page);
            if (!isPaid || next == round.cohorts) (stage, next) = (SettlingStage.Hospitals, 0);
        }
        if (stage != SettlingStage.Cohorts) (stage, next) = _payPage(taskId, task, stage, next, page);
        if (stage == SettlingStage.Done) return _finish(taskId, task);
        (round.stage, round.next) = (stage, uint16(next));
        if (task.state.phase != Phase.Settling) _startPhase(taskId, task, Phase.Settling, 0);
    }

    /// @dev Says if a page has room for one more step, and counts it. The first step always fits.
    function _fits(Page memory page, uint256 gasNeeded) private pure returns (bool) {
        if (page.gasUsed > 0 && page.gasUsed + gasNeeded > PAGE_GAS) return false;
        page.gasUsed += gasNeeded;
        return true;
    }

    /// @dev Judges cohorts from `next` on. @return the first that is left.
    function _judge(Task storage task, Round storage round, uint256 number, uint256 next, Page memory page)
        private
        returns (uint256)
    {
        Judged memory judged = _judged(round, next);
        uint256 raters = round.revealed & ~round.mismatched;
        uint256 gasNeeded = raters.count() * SCORES_PER_COHORT * GAS_PER_SCORE;
        for (; next < judged.medians.length; ++next) {
            if (!uint256(round.viableCohorts).has(next)) continue;
            if (!_fits(page, gasNeeded)) break;
            Verdicts.Judgement memory judgement = Verdicts.judge(task, number, next, raters);
            judged.medians[next] = judgement.median;
            if (judgement.isAccepted) judged.accepted = judged.accepted.with(next);
            if (judgement.isTest) judged.tests = judged.tests.with(next);
            judged.gain += judgement.gain;
        }
        uint256 decay = task.params.rankDecayBps;
        if (decay != 0 && next == judged.medians.length) {
            (judged.accepted, judged.gain) = Ranks.standings(judged.medians, task.params.rankFloor, decay);
        }
        round.medians = judged.medians;
        (round.acceptedCohorts, round.tests) = (uint64(judged.accepted), uint64(judged.tests));
        round.totalGain = uint128(judged.gain);
        return next;
    }

    /// @dev Results of earlier pages.
    function _judged(Round storage round, uint256 next) private view returns (Judged memory judged) {
        judged.medians = next == 0 ? new int64[](round.cohorts) : round.medians;
        (judged.accepted, judged.tests, judged.gain) = (round.acceptedCohorts, round.tests, round.totalGain);
    }

    /// @dev Pays and slashes from `next` of `stage` on.
    function _payPage(uint256 taskId, Task storage task, SettlingStage stage, uint256 next, Page memory page)
        private
        returns (SettlingStage, uint256)
    {
        uint256 number = task.state.round;
        Round storage round = task.rounds[number];
        Verdicts.Verdict memory verdict = Verdicts.read(task, number);
        page.entries =
            new IStaking.Reward[](Math.min(round.survivors.count() + verdict.seats, PAGE_GAS / GAS_PER_NODE) + 1);
        if (stage == SettlingStage.Hospitals) {
            uint256 concerned = (verdict.isPaid ? round.survivors : round.guilty) | verdict.withheld;
            next = _payMembers(taskId, task, verdict, IStaking.Role.Hospital, concerned, next, page);
            if (concerned >> next == 0) (stage, next) = (SettlingStage.Voters, 0);
        }
        if (stage == SettlingStage.Voters) {
            next = _payMembers(taskId, task, verdict, IStaking.Role.Voter, round.seated, next, page);
            if (round.seated >> next == 0) stage = SettlingStage.Done;
        }
        if (stage == SettlingStage.Done) _pay(taskId, task, verdict, IStaking.Role.Aggregator, 0, page);
        _handOver(task, page);
        return (stage, next);
    }

    /// @dev Pays and slashes the members of a role in `among` from `next` on. @return the first that is left.
    function _payMembers(
        uint256 taskId,
        Task storage task,
        Verdicts.Verdict memory verdict,
        IStaking.Role role,
        uint256 among,
        uint256 next,
        Page memory page
    ) private returns (uint256) {
        uint256 gasNeeded = GAS_PER_NODE;
        if (role == IStaking.Role.Voter) gasNeeded += SCORES_PER_COHORT * GAS_PER_SCORE * verdict.medians.length;
        for (; among >> next != 0; ++next) {
            if (!among.has(next)) continue;
            if (!_fits(page, gasNeeded)) break;
            _pay(taskId, task, verdict, role, next, page);
        }
        return next;
    }

    function _pay(
        uint256 taskId,
        Task storage task,
        Verdicts.Verdict memory verdict,
        IStaking.Role role,
        uint256 index,
        Page memory page
    ) private {
        Payout memory payout = Verdicts.ofMember(task, verdict, role, index);
        if (payout.reward == 0) {
            // The aggregator was slashed when it was at fault (`_concludeAtFault`).
            if (role != IStaking.Role.Aggregator) _slash(taskId, task, role, index, payout.reason);
            return;
        }
        (address node,) = _bondOf(task, role, index);
        // No amount exceeds the pool, and that fits 96 bits, in which Staking counts the token's supply.
        page.entries[page.count++] = IStaking.Reward(node, role, uint96(payout.reward));
        page.total += payout.reward;
        emit Rewarded(taskId, task.state.round, node, payout.reward);
    }

    function _handOver(Task storage task, Page memory page) private {
        if (page.count == 0) return;
        (IStaking.Reward[] memory entries, uint256 count) = (page.entries, page.count);
        assembly ("memory-safe") {
            mstore(entries, count)
        }
        task.state.poolLeft -= uint128(page.total);
        task.state.forfeited -= uint96(page.total);
        staking.reward(entries);
    }
}
