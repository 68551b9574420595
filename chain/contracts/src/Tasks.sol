// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {Multicall} from "@openzeppelin/contracts/utils/Multicall.sol";
import {IBeacon} from "./interfaces/IBeacon.sol";
import {IStaking} from "./interfaces/IStaking.sol";
import {ITaskSettlement} from "./interfaces/ITaskSettlement.sol";
import {Kzg} from "./libraries/Kzg.sol";
import {PointHashes} from "./libraries/PointHashes.sol";
import {Scores} from "./libraries/Scores.sol";
import {Signatures} from "./libraries/Signatures.sol";
import {Tickets} from "./libraries/Tickets.sol";
import {Verdicts} from "./libraries/Verdicts.sol";
import {Judging} from "./phases/Judging.sol";
import {Publishing} from "./phases/Publishing.sol";
import {Relaying} from "./phases/Relaying.sol";
import {TaskBase} from "./phases/TaskBase.sol";
import {Task} from "./types/Task.sol";

/// @title Tasks and their rounds.
/// @notice Every phase has a deadline after which anyone may `tick`, so no task gets stuck. If the beacon's value can
///         no longer be proven, a tick requests a new one. Calls can be batched with `multicall`: one blob transaction
///         fixes survivors, adds up commitments and publishes.
/// @dev One contract cannot hold all the code (EIP-170). `settlement` has the code of `ITaskSettlement`, and `registry`
///      that of `ITaskRegistry`. Both are fixed for good, and run here by delegatecall, in the one storage of
///      `TaskBase`.
contract Tasks is Relaying, Publishing, Judging, Multicall {
    address public immutable registry;
    address public immutable settlement;

    constructor(IERC20 token_, IStaking staking_, IBeacon beacon_, address registry_, address settlement_)
        TaskBase(token_, staking_, beacon_)
    {
        (registry, settlement) = (registry_, settlement_);
        // Staking pulls the rewards that this contract names, and nothing else.
        token_.approve(address(staking_), type(uint256).max);
    }

    /// @dev Runs the code of the other contracts here. It delegates as OpenZeppelin's `Proxy` does, but takes no ether.
    ///      It writes behind allocated memory: assembly that is not memory-safe keeps the compiler from moving
    ///      variables off the stack in the whole contract, which costs 1.6 kB of code, and gas in every call.
    fallback() external {
        bool isEnd = msg.sig == ITaskSettlement.settle.selector || msg.sig == ITaskSettlement.discloseDecoys.selector
            || msg.sig == ITaskSettlement.explain.selector;
        _delegate(isEnd ? settlement : registry);
    }

    function _delegate(address code) private {
        assembly ("memory-safe") {
            let free := mload(0x40)
            calldatacopy(free, 0, calldatasize())
            let ok := delegatecall(gas(), code, free, calldatasize(), 0, 0)
            returndatacopy(free, 0, returndatasize())
            switch ok
            case 0 { revert(free, returndatasize()) }
            default { return(free, returndatasize()) }
        }
    }

    function tick(uint256 taskId) external {
        Task storage task = _known(taskId);
        Phase phase = task.state.phase;
        bool isWaiting = phase == Phase.Forming || phase == Phase.Drawing;
        if (isWaiting && block.timestamp <= task.state.deadline) return _askAnew(taskId, task, phase);
        bool isClosed = phase == Phase.Committing && task.state.deadline == 0;
        if (isClosed) return _startUploading(taskId, task);
        bool isLate = phase == Phase.Revealing || phase == Phase.Disclosing || phase == Phase.Settling;
        if (isLate) _delegate(settlement); // does not return

        _requireOver(taskId, task);
        _payBounty(taskId, task);
        if (isWaiting) _conclude(taskId, task, VoidReason.NoRandomness);
        else if (phase == Phase.Joining) _closeJoining(taskId, task);
        else if (phase == Phase.Committing) _closeCommitting(taskId, task);
        else if (phase == Phase.Uploading) _concludeAtFault(taskId, task, VoidReason.SurvivorsNotFixed);
        else if (phase <= Phase.Disputing) _concludeAtFault(taskId, task, VoidReason.NotPublished);
        else _closeScoring(taskId, task);
    }

    function pointHash(uint256 taskId, uint256 round, address hospital, uint256 blob, bytes calldata point)
        external
        view
        returns (bytes32)
    {
        if (point.length != Kzg.POINT_LENGTH) revert PointsWrong(point.length, Kzg.POINT_LENGTH);
        return PointHashes.hashOf(PointHashes.context(taskId, round), hospital, blob, point);
    }

    function commitmentDigest(
        uint256 taskId,
        uint256 round,
        bytes32[] calldata pointHashes,
        bytes32 shareBundle,
        bytes32 base
    ) external view returns (bytes32) {
        return Signatures.digest(taskId, round, pointHashes, shareBundle, base);
    }

    function ticketMessage(uint256 taskId, uint256 round, address voter) external view returns (bytes memory) {
        return Tickets.message(taskId, round, _known(taskId).rounds[round].seatSeed, voter);
    }

    function scoreCommitment(uint256 taskId, uint256 round, address voter, int64[] calldata scores, bytes32 salt)
        external
        view
        returns (bytes32)
    {
        return Scores.commitment(taskId, round, voter, scores, salt);
    }

    /// @dev Requests a new beacon value after the old one expired unproven. Nobody can use this to choose a value: the
    ///      old one counts as long as it can be proven.
    function _askAnew(uint256 taskId, Task storage task, Phase phase) private {
        uint256 request = task.rounds[task.state.round].beaconRequest;
        if (!beacon.expired(request)) revert PhaseNotOver(taskId, task.state.deadline);
        _awaitBeacon(taskId, task, phase);
    }

    /// @dev A round that ends here has no scores, so only hospitals that withheld an upload are slashed.
    function _close(uint256 taskId, Task storage task) internal override {
        if (Verdicts.withheld(task, task.state.round) != 0) _startPhase(taskId, task, Phase.Settling, 0);
        else _finish(taskId, task);
    }
}
