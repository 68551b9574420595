// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IModelShares} from "../../src/interfaces/IModelShares.sol";
import {IStaking} from "../../src/interfaces/IStaking.sol";
import {ITaskTypes} from "../../src/interfaces/ITaskTypes.sol";
import {Fixture} from "./Fixture.sol";

/// @notice Ended tasks whose file has terms of sale.
abstract contract SharesFixture is Fixture {
    bytes internal constant HEAD = 'name = "A task"\n\n';
    address internal constant BUYER = address(0x30005);

    function _terms() internal pure returns (IModelShares.Terms memory) {
        return IModelShares.Terms({server: 20, operator: 10, trainers: 55, voters: 15});
    }

    /// @dev By the text of the documentation rather than by the contract's own.
    function _file(string memory server, string memory operator, string memory trainers, string memory voters)
        internal
        pure
        returns (bytes memory)
    {
        return bytes.concat(
            HEAD,
            "[sale]\nserver_percent = ",
            bytes(server),
            "\noperator_percent = ",
            bytes(operator),
            "\ntrainers_percent = ",
            bytes(trainers),
            "\nvoters_percent = ",
            bytes(voters),
            "\n"
        );
    }

    function _start(bytes memory file) internal {
        ITaskTypes.TaskParams memory params = _params();
        params.specHash = keccak256(file);
        _propose(params);
        _joinAll();
        _runTraining();
    }

    /// @dev Both rounds are accepted: the first one's scores are `first`, the second's `second`.
    function _play(int64 first, int64 second) internal {
        _start(_file("20", "10", "55", "15"));
        _runRound(first);
        _runRound(second);
        _assertPhase(ITaskTypes.Phase.Ended);
    }

    function _playAndMint() internal {
        _play(3_000, 1_000);
        modelShares.showTerms(id, HEAD, _terms());
        modelShares.mint(id, 1_000);
    }

    function _poolOf(uint256 hospital) internal view returns (address) {
        return modelShares.poolAddress(_hospital(hospital), IStaking.Role.Hospital);
    }

    function _poolOfVoter(uint256 voter) internal view returns (address) {
        return modelShares.poolAddress(_voter(voter), IStaking.Role.Voter);
    }

    /// @dev All rewards of the task, as `explain` gives them.
    function _rewardsOf(address account) internal view returns (uint256 sum) {
        for (uint256 round = 0; round <= _round(); ++round) {
            sum += tasks.explain(id, round, account).reward;
        }
    }

    function _pay(uint256 amount) internal {
        token.transfer(BUYER, amount);
        vm.startPrank(BUYER);
        token.approve(address(modelShares), amount);
        modelShares.pay(id, amount);
        vm.stopPrank();
    }
}
