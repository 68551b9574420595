// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IChannels} from "../src/interfaces/IChannels.sol";
import {IEnsembles} from "../src/interfaces/IEnsembles.sol";
import {IModelShares} from "../src/interfaces/IModelShares.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {EnsemblesFixture} from "./utils/EnsemblesFixture.sol";

contract EnsemblesTest is EnsemblesFixture {
    uint256[] private _three;

    function setUp() public override {
        super.setUp();
        _three = _members(3);
    }

    // Forming.

    function test_formEnsemble_keepsMembersAndGains() public {
        uint256[] memory gains = new uint256[](3);
        (gains[0], gains[1], gains[2]) = (1_000, 1_700, 2_400);
        vm.expectEmit(address(modelShares));
        emit IEnsembles.EnsembleFormed(FIRST, _three, gains);
        vm.prank(STRANGER);
        vm.assertEq(modelShares.formEnsemble(_three), FIRST);
        (uint256[] memory taskIds, uint256[] memory kept) = modelShares.ensemble(FIRST);
        vm.assertEq(abi.encode(taskIds, kept), abi.encode(_three, gains));
        vm.assertEq(modelShares.formEnsemble(_pair(1, 3)), FIRST + 1);
        (taskIds, kept) = modelShares.ensemble(FIRST + 1);
        vm.assertEq(abi.encode(taskIds), abi.encode(_pair(1, 3)));
        vm.assertEq(abi.encode(kept), abi.encode(_pair(1_000, 2_400)));
    }

    function test_formEnsemble_takesASetOnce() public {
        modelShares.formEnsemble(_three);
        modelShares.formEnsemble(_pair(1, 2));
        vm.expectRevert(abi.encodeWithSelector(IEnsembles.EnsembleKnown.selector, FIRST));
        modelShares.formEnsemble(_three);
        vm.expectRevert(abi.encodeWithSelector(IEnsembles.EnsembleKnown.selector, FIRST + 1));
        modelShares.formEnsemble(_pair(1, 2));
    }

    function test_formEnsemble_takesTwoToSixteen() public {
        _refuse(new uint256[](0));
        uint256[] memory one = new uint256[](1);
        one[0] = 1;
        _refuse(one);
        uint256[] memory many = new uint256[](17);
        for (uint256 i = 0; i < 17; ++i) {
            many[i] = i < 3 ? i + 1 : _member(1_000);
        }
        _refuse(many);
        assembly {
            mstore(many, 16)
        }
        modelShares.formEnsemble(many);
        (uint256[] memory taskIds,) = modelShares.ensemble(FIRST);
        vm.assertEq(abi.encode(taskIds), abi.encode(many));
    }

    function test_formEnsemble_refusesTasksOutOfOrder() public {
        _refuse(_pair(2, 1));
        _refuse(_pair(2, 2));
    }

    function test_formEnsemble_refusesTasksWithoutParts() public {
        _refuseUnminted(_pair(1, 4), 4);
        _refuseUnminted(_pair(0, 1), 0);
        _refuseUnminted(_pair(1, type(uint256).max), type(uint256).max);
        _refuseUnminted(_pair(1, (1 << 64) + 2), (1 << 64) + 2); // 2 in 64 bits
        _begin(_params());
        _refuseUnminted(_pair(1, 4), 4);
        _runRound(3_000);
        _runRound(1_000);
        _refuseUnminted(_pair(1, 4), 4);
        modelShares.showTerms(id, HEAD, IModelShares.Terms(7, 10, 68, 15));
        modelShares.mint(id, 3); // the gain is known, and not all parts
        _refuseUnminted(_pair(1, 4), 4);
        modelShares.mint(id, 1_000);
        modelShares.formEnsemble(_pair(1, 4));
    }

    function test_formEnsemble_refusesAnEnsembleAsAMember() public {
        modelShares.formEnsemble(_pair(1, 2));
        _refuseUnminted(_pair(3, FIRST), FIRST);
    }

    function test_formEnsemble_refusesATaskWithoutGain() public {
        ITaskTypes.TaskParams memory params = _params();
        params.acceptFloor = -5_000;
        _begin(params);
        _runRound(_scoresOf(2_000, -2_000)); // the first cohort's hospitals are paid
        _loseRound();
        _showAndMint();
        vm.expectRevert(abi.encodeWithSelector(IEnsembles.NoGain.selector, id));
        modelShares.formEnsemble(_pair(1, id));
    }

    function test_ensemble_refusesOtherNumbers() public {
        modelShares.formEnsemble(_three);
        uint256[5] memory others = [uint256(0), 1, FIRST - 1, FIRST + 1, type(uint256).max];
        for (uint256 i = 0; i < others.length; ++i) {
            vm.expectRevert(abi.encodeWithSelector(IEnsembles.EnsembleUnknown.selector, others[i]));
            modelShares.ensemble(others[i]);
            if (others[i] == 1) continue;
            vm.expectRevert(abi.encodeWithSelector(IModelShares.NotMinted.selector, others[i]));
            modelShares.offer(others[i], 1, "https://example.org");
            vm.expectRevert(abi.encodeWithSelector(IModelShares.NotMinted.selector, others[i]));
            modelShares.split(others[i], SERVER);
            vm.expectRevert(abi.encodeWithSelector(IModelShares.NotMinted.selector, others[i]));
            modelShares.deposit(others[i], SERVER, 1);
        }
    }

    /// @dev It has no parts of its own.
    function test_ensemble_isNoTask() public {
        id = modelShares.formEnsemble(_three);
        vm.expectRevert(abi.encodeWithSelector(IModelShares.NotMinted.selector, id));
        modelShares.pay(id, 1);
        vm.expectRevert(abi.encodeWithSelector(IModelShares.TermsUnknown.selector, id));
        modelShares.mint(id, 1_000);
        vm.expectRevert(abi.encodeWithSelector(IModelShares.TermsUnknown.selector, id));
        modelShares.termsOf(id);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.TaskUnknown.selector, id));
        modelShares.showTerms(id, HEAD, _terms());
        vm.expectRevert(abi.encodeWithSelector(IModelShares.NothingToClaim.selector, id, OPERATOR));
        vm.prank(OPERATOR);
        modelShares.claim(id);
    }

    // Sales.

    /// @dev To the unit, members get the amount and the server their fees: by vouchers, and by a till.
    function testFuzz_redeem_isASaleOfEachMember(uint96 amount, uint96 later) public {
        (amount, later) = (uint96(_bound(amount, 1, 1e23)), uint96(_bound(later, 1, 1e23)));
        id = modelShares.formEnsemble(_three);
        _deposit(0, amount);
        (uint256 sold, uint256 fee) = _redeem(0, amount);
        vm.assertEq(sold, amount);
        uint256 fees = _assertDivided(amount, 0);
        vm.assertEq(fee, fees);
        vm.assertEq(token.balanceOf(SERVER), fees);
        uint256[3] memory before = _paid();
        token.transfer(modelShares.tillOf(id, SERVER), later);
        (sold, fee) = modelShares.split(id, SERVER);
        vm.assertEq(sold, later);
        uint256 second;
        for (uint256 i = 0; i < 3; ++i) {
            second += modelShares.paid(i + 1) - before[i];
        }
        vm.assertEq(second + fee, later);
        vm.assertEq(token.balanceOf(SERVER), fees + fee);
        vm.assertEq(token.balanceOf(address(modelShares)), uint256(amount) + later - fees - fee);
        vm.assertEq(modelShares.paid(id), 0);
    }

    /// @dev By its formula rather than by the contract's sums: the shares up to each member are rounded down.
    function _assertDivided(uint256 amount, uint256 before) private view returns (uint256 fees) {
        uint256[4] memory upTo = [uint256(0), 1_000, 2_700, 5_100];
        uint256 sum;
        for (uint256 i = 0; i < 3; ++i) {
            uint256 part = amount * upTo[i + 1] / 5_100 - amount * upTo[i] / 5_100;
            uint256 fee = part * _serverPercent(i + 1) / 100;
            vm.assertEq(modelShares.paid(i + 1), before + part - fee);
            (sum, fees) = (sum + part, fees + fee);
        }
        vm.assertEq(sum, amount);
    }

    function _paid() private view returns (uint256[3] memory paid) {
        for (uint256 i = 0; i < 3; ++i) {
            paid[i] = modelShares.paid(i + 1);
        }
    }

    function test_split_tellsOfTheWholeAndEachMember() public {
        id = modelShares.formEnsemble(_three);
        token.transfer(modelShares.tillOf(id, SERVER), 5_100);
        vm.expectEmit(address(modelShares));
        emit IModelShares.Split(id, SERVER, 5_100, 799);
        vm.expectEmit(address(modelShares));
        emit IModelShares.Split(1, SERVER, 1_000, 200);
        vm.expectEmit(address(modelShares));
        emit IModelShares.Paid(1, SERVER, 800, 800);
        vm.expectEmit(address(modelShares));
        emit IModelShares.Split(2, SERVER, 1_700, 119);
        vm.expectEmit(address(modelShares));
        emit IModelShares.Paid(2, SERVER, 1_581, 1_581);
        vm.expectEmit(address(modelShares));
        emit IModelShares.Split(3, SERVER, 2_400, 480);
        vm.expectEmit(address(modelShares));
        emit IModelShares.Paid(3, SERVER, 1_920, 1_920);
        modelShares.split(id, SERVER);
        vm.prank(OPERATOR);
        vm.assertEq(modelShares.claim(1), 100); // an eighth
    }

    /// @dev One unit is one member's, and the others are left out.
    function test_split_ofOneUnit() public {
        id = modelShares.formEnsemble(_three);
        token.transfer(modelShares.tillOf(id, SERVER), 1);
        modelShares.split(id, SERVER);
        vm.assertEq(modelShares.paid(1) + modelShares.paid(2), 0);
        vm.assertEq(modelShares.paid(3), 1);
    }

    function test_split_refusesNothing() public {
        id = modelShares.formEnsemble(_three);
        vm.expectRevert(abi.encodeWithSelector(IModelShares.AmountIsZero.selector));
        modelShares.split(id, SERVER);
        vm.expectRevert(abi.encodeWithSelector(IModelShares.AmountIsZero.selector));
        modelShares.redeem(id, SERVER, new IChannels.Voucher[](0));
    }

    /// @dev A channel is the ensemble's alone.
    function test_redeem_takesNoMembersVoucher() public {
        id = modelShares.formEnsemble(_three);
        _deposit(0, 1_000);
        IChannels.Voucher[] memory ofEnsemble = _only(_voucher(0, 400));
        id = 1;
        _deposit(0, 1_000);
        IChannels.Voucher[] memory ofMember = _only(_voucher(0, 400));
        vm.expectPartialRevert(IChannels.VoucherForged.selector);
        modelShares.redeem(FIRST, SERVER, ofMember);
        vm.expectPartialRevert(IChannels.VoucherForged.selector);
        modelShares.redeem(1, SERVER, ofEnsemble);
        modelShares.redeem(FIRST, SERVER, ofEnsemble);
        vm.assertEq(modelShares.channel(FIRST, SERVER, _buyer(0)).redeemed, 400);
        vm.assertEq(modelShares.channel(1, SERVER, _buyer(0)).redeemed, 0);
        vm.assertTrue(modelShares.tillOf(FIRST, SERVER) != modelShares.tillOf(1, SERVER));
    }

    function _refuse(uint256[] memory taskIds) private {
        vm.expectRevert(abi.encodeWithSelector(IEnsembles.EnsembleInvalid.selector, taskIds));
        modelShares.formEnsemble(taskIds);
    }

    function _refuseUnminted(uint256[] memory taskIds, uint256 taskId) private {
        vm.expectRevert(abi.encodeWithSelector(IModelShares.NotMinted.selector, taskId));
        modelShares.formEnsemble(taskIds);
    }
}
