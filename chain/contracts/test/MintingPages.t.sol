// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IModelShares} from "../src/interfaces/IModelShares.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {PagesFixture} from "./SettlingPages.t.sol";

/// @notice Pages of minting the largest round fit a transaction.
contract MintingPagesGasTest is PagesFixture {
    bytes private constant HEAD = "#\n";
    // `operators/consilium_operators/selling.py` computes the steps of a page from these.
    uint256 private constant GAS_OF_NODES = 3_500_000;
    uint256 private constant GAS_OF_PAGE = 14_000_000;
    uint256 private constant GAS_OF_STEP = 90_000;
    uint256 private constant GAS_OF_COHORT = 6_000;
    uint256 private constant COHORTS = 64;

    function _count() internal pure override returns (uint256) {
        return 256;
    }

    function _voterCount() internal pure override returns (uint256) {
        return 256;
    }

    function _bond() internal pure override returns (uint256) {
        return STAKE / 10;
    }

    function _terms(ITaskTypes.TaskParams memory params) internal pure override {
        params.cohorts = uint16(COHORTS);
        string memory lines =
            "[sale]\nserver_percent = 20\noperator_percent = 10\ntrainers_percent = 55\nvoters_percent = 15\n";
        params.specHash = keccak256(bytes.concat(HEAD, bytes(lines)));
    }

    function _judge() internal override {
        _vote(1_000);
        _revealAll(1_000);
    }

    /// forge-config: default.isolate = true
    function test_mint_ofTheLargestRoundGoesByPagesWithinTransactions() public {
        _settleByPages("64 cohorts, 256 hospitals and 256 voters paid");
        modelShares.showTerms(id, HEAD, IModelShares.Terms(20, 10, 55, 15));
        uint256 steps = (GAS_OF_PAGE - GAS_OF_NODES) / (GAS_OF_STEP + COHORTS * GAS_OF_COHORT);
        uint256 largest;
        while (!modelShares.minting(id).isDone) {
            vm.prank(STRANGER);
            modelShares.mint(id, steps);
            uint256 used = vm.lastCallGas().gasTotalUsed;
            if (used > largest) largest = used;
        }
        vm.snapshotValue("pages", "mint, 64 cohorts, 256 hospitals and 256 voters", largest);
        vm.assertLe(largest, GAS_OF_PAGE);
        vm.assertLe(largest, TRANSACTION);
        vm.assertEq(modelShares.minting(id).gain, 1_000);
    }
}
