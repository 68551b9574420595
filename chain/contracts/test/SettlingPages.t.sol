// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../src/interfaces/IStaking.sol";
import {ITaskSettlement} from "../src/interfaces/ITaskSettlement.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Bits} from "../src/libraries/Bits.sol";
import {Line, Lines} from "./utils/Crypto.sol";
import {Fixture} from "./utils/Fixture.sol";

/// @notice The largest and most expensive rounds: each page fits a transaction, and the
///         pages together give the result of a single one.
/// @dev Each reaches its round in `setUp`, and pages are calls of their own, so that they find storage as cold as
///      transactions do.
abstract contract PagesFixture is Fixture {
    using Bits for uint256;

    uint256 internal constant TRANSACTION = 1 << 24; // EIP-7825
    int64 internal constant HARM = -1_000_000;

    uint256 internal pages;

    function _count() internal pure virtual returns (uint256);

    function _voterCount() internal pure virtual returns (uint256);

    function _bond() internal pure virtual returns (uint256) {
        return STAKE;
    }

    function _terms(ITaskTypes.TaskParams memory params) internal pure virtual {}

    function _judge() internal virtual;

    function setUp() public override {
        super.setUp();
        for (uint256 i = HOSPITALS; i < _count(); ++i) {
            _stake(_hospital(i), IStaking.Role.Hospital);
        }
        for (uint256 i = VOTERS; i < _voterCount(); ++i) {
            _stake(_voter(i), IStaking.Role.Voter);
            _register(_voter(i), _secret(i));
        }
        _vest();
        ITaskTypes.TaskParams memory params = _params();
        (params.maxHospitals, params.maxVoters) = (uint16(_count()), uint16(_voterCount()));
        (params.minVoters, params.seats, params.minReveals) = (1, uint16(_voterCount()), 1);
        (params.rounds, params.pool, params.cohorts) = (1, 100e18, 1);
        (params.hospitalBond, params.harmfulSlashBps) = (uint128(_bond()), 10_000);
        (params.voterBond, params.notRevealedSlashBps) = (uint128(_bond()), 10_000);
        _terms(params);
        _propose(params);
        _joinAggregator();
        for (uint256 i = 0; i < _count(); ++i) {
            _joinHospital(i);
        }
        for (uint256 i = 0; i < _voterCount(); ++i) {
            _joinVoter(i);
        }
        _train();
        _form();
        _train();
        _judge();
        _pass();
    }

    /// @dev Rewards of an earlier task are still vesting in each pool.
    function _vest() private {
        IStaking.Reward[] memory rewards = new IStaking.Reward[](_count() + _voterCount());
        for (uint256 i = 0; i < rewards.length; ++i) {
            bool isHospital = i < _count();
            address node = isHospital ? _hospital(i) : _voter(i - _count());
            rewards[i] = IStaking.Reward(node, isHospital ? IStaking.Role.Hospital : IStaking.Role.Voter, 1e18);
        }
        token.transfer(address(tasks), rewards.length * 1e18);
        vm.prank(address(tasks));
        staking.reward(rewards);
        vm.warp(block.timestamp + 1 hours);
    }

    function _train() internal {
        uint256 round = _round();
        for (uint256 i = 0; i < _count(); ++i) {
            _commit(round, _hospital(i), _update(round, i));
        }
        _fix(_roundState().committed);
        _publishLarge();
    }

    function _publishLarge() private {
        uint256 cohorts = _roundState().cohorts;
        for (uint256 cohort = 0; cohort < cohorts; ++cohort) {
            uint256 survivors = _survivors(_round(), cohort);
            (bytes memory points, bytes32 hash) = _sumOf(survivors);
            ITaskTypes.Commitments memory all;
            (all.order, all.points) = (_order(_round(), cohort), points);
            tasks.sumCommitments(id, _round(), cohort, 0, all);
            _publish(cohort, 0, hash);
        }
    }

    /// @dev Replaces `_sum`, which copies all points each time, and only knows weights of small tasks.
    function _sumOf(uint256 survivors) private view returns (bytes memory points, bytes32 hash) {
        Line memory sum;
        bytes[] memory all = new bytes[](survivors.count());
        uint256 next;
        for (uint256 i = 0; survivors >> i != 0; ++i) {
            if (!survivors.has(i)) continue;
            Line memory line = _line(_round(), i, 0);
            all[next++] = abi.encode(Lines.point(line));
            Lines.addWeighted(sum, line, _round() == 0 ? 1 : i < 8 ? i + 1 : 8);
        }
        points = new bytes(all.length * 128);
        for (uint256 i = 0; i < all.length; ++i) {
            bytes memory point = all[i];
            for (uint256 word = 32; word <= 128; word += 32) {
                assembly {
                    mstore(add(add(points, mul(i, 128)), word), mload(add(point, word)))
                }
            }
        }
        hash = Lines.hash(sum);
    }

    function _vote(int64 each) internal {
        _draw();
        for (uint256 i = 0; i < _voterCount(); ++i) {
            _score(i, _scores(each));
        }
    }

    function _revealAll(int64 each) internal {
        for (uint256 i = 0; i < _voterCount(); ++i) {
            _reveal(i, _scores(each));
        }
    }

    /// @dev Settles page by page until the round is over. Gives the gas of the most expensive page.
    function _settleByPages(string memory name) internal {
        uint256 largest;
        while (tasks.roundState(id, 1).outcome == ITaskTypes.Outcome.Pending) {
            ++pages;
            vm.prank(STRANGER);
            tasks.settle(id, 1);
            uint256 used = vm.lastCallGas().gasTotalUsed;
            if (used > largest) largest = used;
        }
        vm.snapshotValue("pages", name, largest);
        vm.assertLe(largest, TRANSACTION);
    }
}

contract AllWipedGasTest is PagesFixture {
    function _count() internal pure override returns (uint256) {
        return 256;
    }

    function _voterCount() internal pure override returns (uint256) {
        return 14;
    }

    function _judge() internal override {
        _vote(HARM);
        _revealAll(HARM);
    }

    /// forge-config: default.isolate = true
    function test_settle_slashesAllThatManyHospitalsHaveWithinTransactions() public {
        _settleByPages("256 hospitals lose all, 14 voters");
        vm.assertGt(pages, 1);
        _assertPhase(ITaskTypes.Phase.Ended);
        for (uint256 i = 0; i < _count(); ++i) {
            vm.assertEq(staking.stakeOf(_hospital(i), IStaking.Role.Hospital).active, 0);
            ITaskTypes.Payout memory payout = tasks.explain(id, 1, _hospital(i));
            vm.assertEq(uint256(payout.reason), uint256(ITaskTypes.PayoutReason.Harmful));
            vm.assertEq(payout.slash, STAKE);
        }
    }
}

contract AllSilentGasTest is PagesFixture {
    function _count() internal pure override returns (uint256) {
        return 4;
    }

    function _voterCount() internal pure override returns (uint256) {
        return 256;
    }

    function _judge() internal override {
        _vote(1);
    }

    /// @dev A void round ends, too, however many nodes are slashed.
    /// forge-config: default.isolate = true
    function test_settle_slashesManySilentVotersWithinTransactions() public {
        _settleByPages("256 voters silent, and lose all");
        vm.assertGt(pages, 1);
        _assertVoid(1, ITaskTypes.VoidReason.TooFewScores);
        for (uint256 i = 0; i < _voterCount(); ++i) {
            vm.assertEq(staking.stakeOf(_voter(i), IStaking.Role.Voter).active, 0);
        }
    }
}

contract AllPaidGasTest is PagesFixture {
    function _count() internal pure override returns (uint256) {
        return 128;
    }

    function _voterCount() internal pure override returns (uint256) {
        return 256;
    }

    function _bond() internal pure override returns (uint256) {
        return STAKE / 10;
    }

    function _terms(ITaskTypes.TaskParams memory params) internal pure override {
        params.cohorts = 64;
    }

    function _judge() internal override {
        _vote(1_000);
        _revealAll(1_000);
    }

    /// forge-config: default.isolate = true
    function test_settle_judgesManyCohortsByManyVotersWithinTransactions() public {
        _settleByPages("64 cohorts, 128 hospitals and 256 voters paid");
        vm.assertGt(pages, 3);
        _assertPhase(ITaskTypes.Phase.Ended);
        vm.assertEq(tasks.roundState(id, 1).acceptedCohorts, type(uint64).max);
        uint256 seat = uint256(100e18) * 2_000 / 10_000 / 256;
        uint256 paid;
        for (uint256 i = 0; i < _voterCount(); ++i) {
            vm.assertEq(tasks.explain(id, 1, _voter(i)).reward, seat);
            paid += seat;
        }
        for (uint256 i = 0; i < _count(); ++i) {
            uint256 reward = tasks.explain(id, 1, _hospital(i)).reward;
            vm.assertGt(reward, 0);
            paid += reward;
        }
        paid += tasks.explain(id, 1, AGGREGATOR).reward;
        vm.assertLe(paid, 100e18);
        vm.assertLe(100e18 - paid, _count() + _voterCount()); // rounding alone is burnt
        vm.assertEq(token.balanceOf(address(tasks)), 0);
    }
}

contract ArenaGasTest is PagesFixture {
    using Bits for uint256;

    function _count() internal pure override returns (uint256) {
        return 64;
    }

    function _voterCount() internal pure override returns (uint256) {
        return 64;
    }

    function _terms(ITaskTypes.TaskParams memory params) internal pure override {
        (params.cohorts, params.minCohortSize) = (64, 1);
        (params.rankDecayBps, params.rankFloor) = (8_500, 1);
        (params.hospitalBond, params.voterBond) = (100e18, 100e18);
    }

    function _judge() internal override {
        _vote(1_000);
        _revealAll(1_000);
    }

    /// @dev All medians are equal, so ranks follow the cohorts' numbers.
    /// forge-config: default.isolate = true
    function test_settle_ranksManyHospitalsWithinTransactions() public {
        _settleByPages("64 hospitals ranked, and 64 voters paid");
        _assertPhase(ITaskTypes.Phase.Ended);
        vm.assertEq(tasks.roundState(id, 1).acceptedCohorts, 1);
        uint256 paid;
        for (uint256 rank = 0; rank < _count(); ++rank) {
            uint256 members = tasks.cohortMembers(id, 1, rank);
            for (uint256 i = 0; i < _count(); ++i) {
                if (members.has(i)) paid += tasks.explain(id, 1, _hospital(i)).reward;
            }
        }
        vm.assertLe(paid, 70e18);
        vm.assertLe(70e18 - paid, _count());
    }
}
