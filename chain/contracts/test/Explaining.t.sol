// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../src/interfaces/IStaking.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Bits} from "../src/libraries/Bits.sol";
import {Fixture} from "./utils/Fixture.sol";

/// @notice `explain` over whole tasks. Settlement.t.sol compares single rounds with the reference.
contract ExplainingTest is Fixture {
    using Bits for uint256;

    function _says(address account, ITaskTypes.PayoutReason reason, uint256 reward, uint256 slash) private view {
        _saysOf(_round(), account, reason, reward, slash);
    }

    function _saysOf(uint256 round, address account, ITaskTypes.PayoutReason reason, uint256 reward, uint256 slash)
        private
        view
    {
        ITaskTypes.Payout memory payout = tasks.explain(id, round, account);
        vm.assertEq(uint256(payout.reason), uint256(reason));
        vm.assertEq(payout.reward, reward);
        vm.assertEq(payout.slash, slash);
    }

    function _everything(uint256 round) private view returns (bytes memory all) {
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            all = bytes.concat(all, abi.encode(tasks.explain(id, round, _hospital(i))));
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            all = bytes.concat(all, abi.encode(tasks.explain(id, round, _voter(i))));
        }
        return bytes.concat(all, abi.encode(tasks.explain(id, round, AGGREGATOR)));
    }

    function test_explain_saysNothingBeforeTheEnd() public {
        _toRevealing(1);
        _says(_hospital(0), ITaskTypes.PayoutReason.NotSettled, 0, 0);
        _saysOf(7, AGGREGATOR, ITaskTypes.PayoutReason.NotSettled, 0, 0);
        _saysOf(0, _voter(0), ITaskTypes.PayoutReason.Statistics, 0, 0);
        _says(OPERATOR, ITaskTypes.PayoutReason.Stranger, 0, 0);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.TaskUnknown.selector, 9));
        tasks.explain(9, 1, AGGREGATOR);
    }

    /// @dev The answers stay although pool and bonds shrink, are slashed to nothing, and are released.
    function test_explain_neverChangesItsAnswer() public {
        ITaskTypes.TaskParams memory params = _params();
        (params.rounds, params.harmfulSlashBps) = (3, 7_000);
        _propose(params);
        _joinAll();
        _runTraining();
        bytes[] memory before = new bytes[](3);
        for (uint256 round = 1; round < 3; ++round) {
            _form();
            _runTraining();
            _draw();
            for (uint256 i = round == 1 ? 0 : 1; i < VOTERS; ++i) {
                _score(i, _scores(-20_000));
            }
            if (round > 1) {
                _pass();
                tasks.tick(id);
            }
            for (uint256 i = 1; i < VOTERS; ++i) {
                _reveal(i, _scores(-20_000));
            }
            _pass();
            tasks.settle(id, round);
            before[round] = _everything(round);
        }
        _assertPhase(ITaskTypes.Phase.Ended); // all hospitals lost their bonds
        _saysOf(1, _hospital(0), ITaskTypes.PayoutReason.Harmful, 0, 70e18);
        _saysOf(2, _hospital(0), ITaskTypes.PayoutReason.Harmful, 0, 30e18);
        _saysOf(1, _voter(0), ITaskTypes.PayoutReason.NotRevealed, 0, 25e18);
        _saysOf(2, _voter(0), ITaskTypes.PayoutReason.NoSeat, 0, 0);
        tasks.releaseBond(id, _voter(1));
        tasks.releaseBond(id, AGGREGATOR);
        for (uint256 round = 1; round < 3; ++round) {
            vm.assertEq(_everything(round), before[round]);
        }
    }

    function test_explain_namesWhoLetARoundGoBy() public {
        _toUploading();
        _pass();
        tasks.tick(id);
        _form();
        _commitAll();
        _fix(_roundState().committed);
        _pass();
        tasks.tick(id);
        for (uint256 round = 1; round < 3; ++round) {
            _saysOf(round, AGGREGATOR, ITaskTypes.PayoutReason.NotPublished, 0, 100e18);
            _saysOf(round, _hospital(2), ITaskTypes.PayoutReason.Void, 0, 0);
            _saysOf(round, _voter(2), ITaskTypes.PayoutReason.Void, 0, 0);
        }
    }

    function test_explain_blamesNobodyForHospitalsThatStayAway() public {
        _toCommitting();
        _pass();
        tasks.tick(id);
        _saysOf(1, AGGREGATOR, ITaskTypes.PayoutReason.Void, 0, 0);
        _saysOf(1, _hospital(0), ITaskTypes.PayoutReason.Void, 0, 0);
    }

    /// @dev With too few seats nobody could reveal. With too few reveals the silent voters are slashed.
    function test_explain_blamesSilenceOnlyWhereThereWasATimeToReveal() public {
        _toScoring();
        _score(0, _scores(1));
        _pass();
        tasks.tick(id);
        _saysOf(1, _voter(0), ITaskTypes.PayoutReason.Void, 0, 0);

        _form();
        _runTraining();
        _draw();
        _score(0, _scores(1));
        _score(1, _scores(1));
        _pass();
        tasks.tick(id);
        _reveal(0, _scores(1));
        _pass();
        tasks.tick(id);
        _saysOf(2, _voter(0), ITaskTypes.PayoutReason.Void, 0, 0);
        _saysOf(2, _voter(1), ITaskTypes.PayoutReason.NotRevealed, 0, 25e18);
        _saysOf(2, _voter(2), ITaskTypes.PayoutReason.NoSeat, 0, 0);
        vm.assertEq(_locked(_voter(1), IStaking.Role.Voter), 25e18);
    }
}
