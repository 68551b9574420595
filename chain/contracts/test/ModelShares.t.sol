// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IModelShares} from "../src/interfaces/IModelShares.sol";
import {IStaking} from "../src/interfaces/IStaking.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Till} from "../src/Till.sol";
import {SharesFixture} from "./utils/SharesFixture.sol";

contract ModelSharesTest is SharesFixture {
    uint256 private constant WHOLE = 1 << 64;

    // Terms.

    function test_showTerms_takesTheFilesLastLinesFromAnybody() public {
        _start(_file("20", "10", "55", "15"));
        vm.expectRevert(abi.encodeWithSelector(IModelShares.TermsUnknown.selector, id));
        modelShares.termsOf(id);
        vm.prank(STRANGER);
        vm.expectEmit(address(modelShares));
        emit IModelShares.TermsShown(id, 20, 10, 55, 15);
        modelShares.showTerms(id, HEAD, _terms());
        IModelShares.Terms memory terms = modelShares.termsOf(id);
        vm.assertEq(keccak256(abi.encode(terms)), keccak256(abi.encode(_terms())));
        vm.expectRevert(abi.encodeWithSelector(IModelShares.TermsKnown.selector, id));
        modelShares.showTerms(id, HEAD, _terms());
    }

    function test_showTerms_takesPercentagesAtTheirLimits() public {
        _start(_file("0", "0", "100", "0"));
        modelShares.showTerms(id, HEAD, IModelShares.Terms(0, 0, 100, 0));
        _start(_file("99", "0", "0", "1"));
        modelShares.showTerms(id, HEAD, IModelShares.Terms(99, 0, 0, 1));
    }

    function test_showTerms_refusesOthersThanTheFiles(uint8 server, uint8 operator, uint8 trainers) public {
        (server, operator, trainers) = (server % 34, operator % 34, trainers % 34);
        IModelShares.Terms memory other =
            IModelShares.Terms(server, operator, trainers, 100 - server - operator - trainers);
        vm.assume(keccak256(abi.encode(other)) != keccak256(abi.encode(_terms())));
        _start(_file("20", "10", "55", "15"));
        vm.expectPartialRevert(IModelShares.NotTheFile.selector);
        modelShares.showTerms(id, HEAD, other);
    }

    function test_showTerms_refusesSumsOtherThanAHundred(uint8 server, uint8 operator, uint8 trainers, uint8 voters)
        public
    {
        uint256 sum = uint256(server) + operator + trainers + voters;
        vm.assume(sum != 100 || server == 100);
        _start(_file("20", "10", "55", "15"));
        IModelShares.Terms memory terms = IModelShares.Terms(server, operator, trainers, voters);
        vm.expectRevert(abi.encodeWithSelector(IModelShares.TermsInvalid.selector, terms));
        modelShares.showTerms(id, HEAD, terms);
    }

    function test_showTerms_refusesAFileWithoutTerms() public {
        _start(HEAD);
        vm.expectPartialRevert(IModelShares.NotTheFile.selector);
        modelShares.showTerms(id, HEAD, _terms());
        vm.expectPartialRevert(IModelShares.NotTheFile.selector);
        modelShares.showTerms(id, "", _terms());
        vm.expectRevert(abi.encodeWithSelector(IModelShares.TermsUnknown.selector, id));
        modelShares.mint(id, 1);
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.TaskUnknown.selector, 9));
        modelShares.showTerms(9, HEAD, _terms());
    }

    /// @dev The lines must begin a line: behind "# " they are a comment, and the file has no terms.
    function test_showTerms_refusesLinesBehindAComment() public {
        bytes memory head = bytes.concat(HEAD, "# ");
        bytes memory file = _file("20", "10", "55", "15");
        bytes memory lines = new bytes(file.length - HEAD.length);
        for (uint256 i = 0; i < lines.length; ++i) {
            lines[i] = file[HEAD.length + i];
        }
        _start(bytes.concat(head, lines));
        vm.expectPartialRevert(IModelShares.NotTheFile.selector);
        modelShares.showTerms(id, head, _terms());
        _start(lines); // a file of nothing else is no task
        vm.expectPartialRevert(IModelShares.NotTheFile.selector);
        modelShares.showTerms(id, "", _terms());
    }

    // Minting.

    function test_mint_givesEachPartyItsPart() public {
        _playAndMint();
        (uint256 trainers, uint256 voters) = (_sumOf(true), _sumOf(false));
        vm.assertGt(trainers, 0);
        vm.assertGt(voters, 0);
        uint256 given;
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            uint256 parts = modelShares.balanceOf(_poolOf(i), id);
            vm.assertEq(parts, WHOLE * 55 * _rewardsOf(_hospital(i)) / (trainers * 80));
            given += parts;
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            uint256 parts = modelShares.balanceOf(_poolOfVoter(i), id);
            vm.assertEq(parts, WHOLE * 15 * _rewardsOf(_voter(i)) / (voters * 80));
            given += parts;
        }
        uint256 rest = modelShares.balanceOf(OPERATOR, id);
        vm.assertEq(given + rest, WHOLE);
        vm.assertLe(WHOLE * 10 / 80, rest);
        vm.assertLe(rest, WHOLE * 10 / 80 + HOSPITALS + VOTERS); // the operator has what rounding leaves
        vm.expectRevert(abi.encodeWithSelector(IModelShares.AlreadyMinted.selector, id));
        modelShares.mint(id, 1);
    }

    /// @dev Pages of any size, by anybody, give the same parts as one call.
    function test_mint_goesInPagesOfAnySize(uint256 seed) public {
        _playAndMint();
        bytes memory wanted = _allParts();
        _play(3_000, 1_000);
        modelShares.showTerms(id, HEAD, _terms());
        for (uint256 page = 0; !modelShares.minting(id).isDone; ++page) {
            vm.prank(address(uint160(uint256(keccak256(abi.encode(seed, page, "sender"))))));
            modelShares.mint(id, uint256(keccak256(abi.encode(seed, page))) % 5);
            vm.assertLe(page, 200);
        }
        vm.assertEq(_allParts(), wanted);
    }

    function test_mint_waitsForTheEnd() public {
        _start(_file("20", "10", "55", "15"));
        modelShares.showTerms(id, HEAD, _terms());
        vm.expectRevert(abi.encodeWithSelector(IModelShares.NotEnded.selector, id));
        modelShares.mint(id, 100);
        _runRound(3_000);
        vm.expectRevert(abi.encodeWithSelector(IModelShares.NotEnded.selector, id));
        modelShares.mint(id, 100);
        vm.expectRevert(abi.encodeWithSelector(IModelShares.NotMinted.selector, id));
        modelShares.pay(id, 1);
    }

    /// @dev A model that nobody was paid for is no one's to sell.
    function test_mint_refusesATaskInWhichNoHospitalEarned() public {
        _play(0, 0);
        modelShares.showTerms(id, HEAD, _terms());
        vm.expectRevert(abi.encodeWithSelector(IModelShares.NothingEarned.selector, id));
        modelShares.mint(id, 1_000);
        modelShares.mint(id, 3); // the counting goes on, and ends the same
        vm.expectRevert(abi.encodeWithSelector(IModelShares.NothingEarned.selector, id));
        modelShares.mint(id, 1_000);
    }

    function test_mint_refusesATaskThatEndedBeforeItsFirstRound() public {
        ITaskTypes.TaskParams memory params = _params();
        params.specHash = keccak256(_file("20", "10", "55", "15"));
        _propose(params);
        modelShares.showTerms(id, HEAD, _terms());
        vm.prank(OPERATOR);
        tasks.stop(id);
        vm.expectRevert(abi.encodeWithSelector(IModelShares.NothingEarned.selector, id));
        modelShares.mint(id, 1_000);
    }

    /// @dev Else one contract could keep everybody from their parts.
    function test_mint_callsNoReceiverBack() public {
        vm.etch(OPERATOR, hex"fe");
        _playAndMint();
        vm.assertGt(modelShares.balanceOf(OPERATOR, id), 0);
    }

    /// @dev The task pays its voters nothing.
    function test_mint_leavesUnpaidVotersPercentToTrainers() public {
        ITaskTypes.TaskParams memory params = _params();
        params.specHash = keccak256(_file("20", "10", "55", "15"));
        (params.voterShareBps, params.hospitalShareBps) = (0, 9_000);
        _propose(params);
        _joinAll();
        _runTraining();
        _runRound(3_000);
        _runRound(1_000);
        modelShares.showTerms(id, HEAD, _terms());
        modelShares.mint(id, 1_000);
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            uint256 parts = modelShares.balanceOf(_poolOf(i), id);
            vm.assertEq(parts, WHOLE * 70 * _rewardsOf(_hospital(i)) / (_sumOf(true) * 80));
        }
    }

    // Money.

    function test_pay_isSplitWithoutARemainder() public {
        _playAndMint();
        uint256 amount = 1_000e18 + 7;
        _pay(amount);
        uint256 sum;
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            sum += _owed(_poolOf(i), amount);
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            sum += _owed(_poolOfVoter(i), amount);
        }
        sum += _owed(OPERATOR, amount);
        vm.assertLe(sum, amount);
        vm.assertLe(amount, sum + HOSPITALS + VOTERS); // less than a unit of each holder
        vm.assertEq(token.balanceOf(address(modelShares)), amount);
        vm.assertEq(modelShares.paid(id), amount);
    }

    function test_claim_paysOnceAndKeepsTheFraction() public {
        _playAndMint();
        _pay(7);
        uint256 parts = modelShares.balanceOf(OPERATOR, id);
        vm.expectRevert(abi.encodeWithSelector(IModelShares.NothingToClaim.selector, id, OPERATOR));
        vm.prank(OPERATOR);
        modelShares.claim(id); // an eighth of 7
        uint256 before = token.balanceOf(OPERATOR);
        _pay(2);
        vm.prank(OPERATOR);
        vm.assertEq(modelShares.claim(id), parts * 9 / WHOLE);
        vm.assertEq(token.balanceOf(OPERATOR) - before, 1);
        vm.expectRevert(abi.encodeWithSelector(IModelShares.NothingToClaim.selector, id, OPERATOR));
        vm.prank(OPERATOR);
        modelShares.claim(id);
        vm.expectRevert(abi.encodeWithSelector(IModelShares.NothingToClaim.selector, id, STRANGER));
        vm.prank(STRANGER);
        modelShares.claim(id);
    }

    function test_transfer_movesLaterMoneyAndNotEarlier() public {
        _playAndMint();
        _pay(800e18);
        uint256 parts = modelShares.balanceOf(OPERATOR, id);
        vm.prank(OPERATOR);
        modelShares.safeTransferFrom(OPERATOR, STRANGER, id, parts, "");
        _pay(80e18);
        vm.assertEq(modelShares.claimable(id, OPERATOR), parts * 800e18 / WHOLE);
        vm.assertEq(modelShares.claimable(id, STRANGER), parts * 80e18 / WHOLE);
        vm.prank(STRANGER);
        modelShares.safeTransferFrom(STRANGER, STRANGER, id, parts, ""); // changes nothing
        vm.assertEq(modelShares.claimable(id, STRANGER), parts * 80e18 / WHOLE);
        uint256[] memory ids = new uint256[](2);
        uint256[] memory values = new uint256[](2);
        (ids[0], ids[1], values[0], values[1]) = (id, id, parts / 2, parts / 4);
        vm.prank(STRANGER);
        modelShares.safeBatchTransferFrom(STRANGER, OPERATOR, ids, values, "");
        vm.assertEq(modelShares.claimable(id, OPERATOR), parts * 800e18 / WHOLE);
        vm.assertEq(modelShares.claimable(id, STRANGER), parts * 80e18 / WHOLE);
    }

    function test_claimForPool_letsNodeAndDelegatorsShare() public {
        _playAndMint();
        address node = _hospital(3);
        token.transfer(STRANGER, STAKE);
        vm.startPrank(STRANGER);
        token.approve(address(staking), STAKE);
        staking.delegate(node, IStaking.Role.Hospital, STAKE); // half of the pool
        vm.stopPrank();
        vm.warp(block.timestamp + 30 days); // rewards of the rounds have vested
        (,, uint256 before) = staking.positionOf(node, node, IStaking.Role.Hospital);
        (,, uint256 delegators) = staking.positionOf(STRANGER, node, IStaking.Role.Hospital);
        _pay(1_000e18);
        uint256 owed = modelShares.claimable(id, _poolOf(3));
        vm.prank(BUYER);
        vm.assertEq(modelShares.claimForPool(_tasks(), node, IStaking.Role.Hospital), owed);
        vm.warp(block.timestamp + VESTING);
        uint256 fee = owed * COMMISSION / 10_000;
        (,, uint256 has) = staking.positionOf(STRANGER, node, IStaking.Role.Hospital);
        _isNear(has - delegators, (owed - fee) / 2);
        (,, has) = staking.positionOf(node, node, IStaking.Role.Hospital);
        _isNear(has - before, fee + (owed - fee) / 2);
        vm.expectRevert(abi.encodeWithSelector(IModelShares.NothingToClaim.selector, id, _poolOf(3)));
        modelShares.claimForPool(_tasks(), node, IStaking.Role.Hospital);
    }

    /// @dev Dust that anybody hands over does not keep a node's rewards from vesting.
    function test_claimForPool_delaysNothingByDust() public {
        _playAndMint();
        address node = _hospital(3);
        uint256 end = staking.poolOf(node, IStaking.Role.Hospital).vestingEnd;
        vm.assertGt(end, block.timestamp);
        while (block.timestamp + 3_600 < end) {
            vm.warp(block.timestamp + 3_600);
            _pay(1_000);
            modelShares.claimForPool(_tasks(), node, IStaking.Role.Hospital);
        }
        vm.assertEq(staking.poolOf(node, IStaking.Role.Hospital).vestingEnd, end);
    }

    function test_claimForPool_takesNoTaskTwice() public {
        _playAndMint();
        _pay(1_000e18);
        uint256[] memory twice = new uint256[](2);
        (twice[0], twice[1]) = (id, id);
        vm.expectRevert(abi.encodeWithSelector(IModelShares.NothingToClaim.selector, id, _poolOf(0)));
        modelShares.claimForPool(twice, _hospital(0), IStaking.Role.Hospital);
    }

    function test_pay_refusesNothingAndTasksWithoutParts() public {
        _playAndMint();
        vm.expectRevert(abi.encodeWithSelector(IModelShares.AmountIsZero.selector));
        modelShares.pay(id, 0);
        vm.expectRevert(abi.encodeWithSelector(IModelShares.NotMinted.selector, 9));
        modelShares.pay(9, 1);
    }

    // Tills.

    function test_split_givesTheServerItsPercentAndHoldersTheRest() public {
        _playAndMint();
        address till = modelShares.tillOf(id, STRANGER);
        vm.assertEq(till.code.length, 0); // it takes money before it is deployed
        token.transfer(till, 1_003);
        uint256 before = token.balanceOf(STRANGER);
        vm.prank(BUYER);
        (uint256 amount, uint256 fee) = modelShares.split(id, STRANGER);
        vm.assertEq(amount, 1_003);
        vm.assertEq(fee, 200); // a fifth, rounded down
        vm.assertEq(token.balanceOf(STRANGER) - before, 200);
        vm.assertEq(modelShares.paid(id), 803);
        vm.assertEq(token.balanceOf(till), 0);
        token.transfer(till, 5);
        modelShares.split(id, STRANGER);
        vm.assertEq(modelShares.paid(id), 807);
        vm.assertEq(token.balanceOf(address(modelShares)), 807);
    }

    function test_split_keepsTillsApart() public {
        _playAndMint();
        address till = modelShares.tillOf(id, STRANGER);
        vm.assertTrue(till != modelShares.tillOf(id, BUYER));
        vm.assertTrue(till != modelShares.tillOf(id + 1, STRANGER));
        token.transfer(till, 1_000);
        vm.expectRevert(abi.encodeWithSelector(IModelShares.AmountIsZero.selector));
        modelShares.split(id, BUYER);
        vm.expectRevert(abi.encodeWithSelector(IModelShares.NotMinted.selector, id + 1));
        modelShares.split(id + 1, STRANGER);
        vm.assertEq(token.balanceOf(till), 1_000);
    }

    /// @dev A till's code is the same for all, and obeys nobody else.
    function test_till_obeysModelSharesAlone() public {
        _playAndMint();
        address till = modelShares.tillOf(id, STRANGER);
        token.transfer(till, 1_000);
        modelShares.split(id, STRANGER);
        token.transfer(till, 1_000);
        vm.prank(STRANGER);
        vm.expectRevert(abi.encodeWithSelector(Till.OnlyModelShares.selector, STRANGER));
        Till(till).empty(1);
    }

    /// @dev All of a payment can be the holders', and nearly all the server's.
    function test_split_byPercentagesAtTheirLimits() public {
        _start(_file("0", "0", "100", "0"));
        _runRound(3_000);
        _runRound(1_000);
        modelShares.showTerms(id, HEAD, IModelShares.Terms(0, 0, 100, 0));
        modelShares.mint(id, 1_000);
        token.transfer(modelShares.tillOf(id, STRANGER), 99);
        (, uint256 fee) = modelShares.split(id, STRANGER);
        vm.assertEq(fee, 0);
        _start(_file("99", "0", "1", "0"));
        _runRound(3_000);
        _runRound(1_000);
        modelShares.showTerms(id, HEAD, IModelShares.Terms(99, 0, 1, 0));
        modelShares.mint(id, 1_000);
        token.transfer(modelShares.tillOf(id, STRANGER), 101);
        (, fee) = modelShares.split(id, STRANGER);
        vm.assertEq(fee, 99);
        vm.assertGt(modelShares.balanceOf(_poolOf(0), id), 0);
    }

    // Helpers.

    function _sumOf(bool isTrainers) private view returns (uint256 sum) {
        for (uint256 i = 0; i < (isTrainers ? HOSPITALS : VOTERS); ++i) {
            sum += _rewardsOf(isTrainers ? _hospital(i) : _voter(i));
        }
    }

    function _allParts() private view returns (bytes memory all) {
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            all = bytes.concat(all, bytes32(modelShares.balanceOf(_poolOf(i), id)));
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            all = bytes.concat(all, bytes32(modelShares.balanceOf(_poolOfVoter(i), id)));
        }
        return bytes.concat(all, bytes32(modelShares.balanceOf(OPERATOR, id)));
    }

    function _owed(address holder, uint256 amount) private view returns (uint256 owed) {
        owed = modelShares.claimable(id, holder);
        vm.assertEq(owed, modelShares.balanceOf(holder, id) * amount / WHOLE);
    }

    function _tasks() private view returns (uint256[] memory list) {
        list = new uint256[](1);
        list[0] = id;
    }

    function _isNear(uint256 left, uint256 right) private pure {
        vm.assertLe(left, right + 1e8); // a pool keeps what it cannot divide among its shares
        vm.assertLe(right, left + 1e8);
    }
}
