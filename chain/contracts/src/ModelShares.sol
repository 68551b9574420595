// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ERC1155} from "@openzeppelin/contracts/token/ERC1155/ERC1155.sol";
import {Clones} from "@openzeppelin/contracts/proxy/Clones.sol";
import {Strings} from "@openzeppelin/contracts/utils/Strings.sol";
import {IModelShares} from "./interfaces/IModelShares.sol";
import {IStaking} from "./interfaces/IStaking.sol";
import {ITasks} from "./interfaces/ITasks.sol";
import {ITaskTypes} from "./interfaces/ITaskTypes.sol";
import {Gains} from "./libraries/Gains.sol";
import {Channels} from "./selling/Channels.sol";
import {Ensembles} from "./selling/Ensembles.sol";
import {Till} from "./Till.sol";

/// @title Parts of finished models as tokens (ERC-1155), and the money that they bring.
/// @notice A task's parts are 2^64, and money is counted in 2^-64 of a unit: a payment is split without a remainder, and
///         only what a holder takes out is rounded down. Its fraction stays its own.
/// @dev Minting calls no receiver back (`onERC1155Received`), unlike later transfers: a contract that refuses would keep
///      everybody else from their parts. The token is fixed at deployment and calls nobody back.
contract ModelShares is IModelShares, ERC1155, Channels, Ensembles {
    using SafeERC20 for IERC20;

    /// @notice A holder's part of a task's payments.
    struct Account {
        uint256 seen; // payments up to which `earnedX64` counts
        uint256 earnedX64; // not yet claimed
    }

    uint256 public constant WHOLE = 1 << 64;
    uint256 private constant PERCENT = 100;

    IStaking public immutable staking;
    ITasks public immutable tasks;
    /// @notice The code of all tills.
    Till public immutable till;

    mapping(uint256 taskId => Terms) private _terms;
    mapping(uint256 taskId => Minting) private _mintings;
    mapping(uint256 taskId => mapping(address account => uint256)) private _earned;
    mapping(uint256 taskId => uint256) public paid;
    mapping(uint256 taskId => mapping(address holder => Account)) private _accounts;

    constructor(IERC20 token_, IStaking staking_, ITasks tasks_) ERC1155("") Channels(token_) {
        (staking, tasks, till) = (staking_, tasks_, new Till(token_));
        // Staking pulls the rewards that this contract names, and nothing else.
        token_.forceApprove(address(staking_), type(uint256).max);
    }

    // Terms.

    /// @inheritdoc IModelShares
    function showTerms(uint256 taskId, bytes calldata head, Terms calldata terms) external {
        if (_isKnown(taskId)) revert TermsKnown(taskId);
        uint256 sum = uint256(terms.server) + terms.operator + terms.trainers + terms.voters;
        if (sum != PERCENT || terms.server == PERCENT) revert TermsInvalid(terms);
        // The lines end the file, and begin a line of it. So they are the section [sale] of any file that is valid TOML:
        // a string or an array that held them would not end, and a comment ends with its line.
        bytes32 given = keccak256(bytes.concat(head, _lines(terms)));
        bytes32 specHash = tasks.params(taskId).specHash;
        bool isLine = head.length > 0 && head[head.length - 1] == "\n";
        if (!isLine || given != specHash) revert NotTheFile(taskId, specHash, given);
        _terms[taskId] = terms;
        emit TermsShown(taskId, terms.server, terms.operator, terms.trainers, terms.voters);
    }

    function _lines(Terms calldata terms) private pure returns (bytes memory) {
        return abi.encodePacked(
            "[sale]\nserver_percent = ",
            Strings.toString(terms.server),
            "\noperator_percent = ",
            Strings.toString(terms.operator),
            "\ntrainers_percent = ",
            Strings.toString(terms.trainers),
            "\nvoters_percent = ",
            Strings.toString(terms.voters),
            "\n"
        );
    }

    /// @dev Terms add up to 100, and are never all zero.
    function _isKnown(uint256 taskId) private view returns (bool) {
        Terms memory terms = _terms[taskId];
        return terms.operator != 0 || terms.trainers != 0 || terms.voters != 0;
    }

    // Minting.

    /// @inheritdoc IModelShares
    function mint(uint256 taskId, uint256 steps) external {
        if (!_isKnown(taskId)) revert TermsUnknown(taskId);
        Minting memory progress = _mintings[taskId];
        if (progress.isDone) revert AlreadyMinted(taskId);
        ITaskTypes.TaskState memory state = tasks.state(taskId);
        if (state.phase != ITaskTypes.Phase.Ended) revert NotEnded(taskId);
        (address[] memory nodes, uint256 hospitals) = _nodes(taskId);
        bool isNew = progress.next == 0 && progress.round == 0 && progress.given == 0 && progress.trainersEarned == 0;
        if (isNew) progress.round = state.round;
        while (steps > 0 && progress.round != 0) {
            if (progress.next == 0) progress.gain += uint96(Gains.gain(tasks.roundState(taskId, progress.round)));
            _count(taskId, progress, nodes[progress.next], progress.next < hospitals);
            if (++progress.next == nodes.length) (progress.round, progress.next) = (progress.round - 1, 0);
            --steps;
        }
        if (progress.round == 0 && progress.trainersEarned == 0) revert NothingEarned(taskId);
        while (steps > 0 && progress.round == 0 && progress.next < nodes.length) {
            _give(taskId, progress, nodes[progress.next], progress.next < hospitals);
            ++progress.next;
            --steps;
        }
        if (progress.round == 0 && progress.next == nodes.length) {
            progress.isDone = true;
            _move(address(0), state.operator, taskId, WHOLE - progress.given);
            emit Minted(taskId);
        }
        _mintings[taskId] = progress;
    }

    /// @dev All that can earn parts: hospitals, then voters.
    function _nodes(uint256 taskId) private view returns (address[] memory nodes, uint256 hospitals) {
        ITaskTypes.Hospital[] memory trainers = tasks.hospitals(taskId);
        ITaskTypes.Voter[] memory voters = tasks.voters(taskId);
        hospitals = trainers.length;
        nodes = new address[](hospitals + voters.length);
        for (uint256 i = 0; i < nodes.length; ++i) {
            nodes[i] = i < hospitals ? trainers[i].node : voters[i - hospitals].node;
        }
    }

    function _count(uint256 taskId, Minting memory progress, address node, bool isTrainer) private {
        uint256 reward = tasks.explain(taskId, progress.round, node).reward;
        if (reward == 0) return;
        _earned[taskId][node] += reward;
        if (isTrainer) progress.trainersEarned += uint96(reward);
        else progress.votersEarned += uint96(reward);
    }

    /// @dev If no voter earned anything, trainers have the voters' percent.
    function _give(uint256 taskId, Minting memory progress, address node, bool isTrainer) private {
        uint256 earned = _earned[taskId][node];
        if (earned == 0) return;
        delete _earned[taskId][node];
        Terms memory terms = _terms[taskId];
        uint256 percent = isTrainer ? terms.trainers : terms.voters;
        if (progress.votersEarned == 0) percent += terms.voters;
        uint256 all = isTrainer ? progress.trainersEarned : progress.votersEarned;
        uint256 parts = WHOLE * percent * earned / (all * (PERCENT - terms.server));
        if (parts == 0) return;
        progress.given += uint96(parts);
        _move(address(0), poolAddress(node, isTrainer ? IStaking.Role.Hospital : IStaking.Role.Voter), taskId, parts);
    }

    // Money.

    /// @inheritdoc IModelShares
    function pay(uint256 taskId, uint256 amount) external {
        _add(taskId, msg.sender, amount);
        _pull(msg.sender, amount);
    }

    /// @inheritdoc IModelShares
    function split(uint256 taskId, address server) external returns (uint256 amount, uint256 fee) {
        address own = tillOf(taskId, server);
        if (own.code.length == 0) own = Clones.cloneDeterministic(address(till), _salt(taskId, server));
        amount = token.balanceOf(own);
        fee = _addSale(taskId, server, amount);
        uint256 before = token.balanceOf(address(this));
        Till(own).empty(amount);
        _requireArrived(before, amount);
        if (fee > 0) token.safeTransfer(server, fee);
    }

    /// @dev A sale of an ensemble is one of each member whose part is not zero.
    function _addSale(uint256 id, address server, uint256 amount) internal override returns (uint256 fee) {
        if (!_isEnsemble(id)) return _sell(id, server, amount);
        if (amount == 0) revert AmountIsZero();
        (uint256[] memory taskIds, uint256[] memory gains) = ensemble(id);
        uint256[] memory amounts = _divided(amount, gains);
        for (uint256 i = 0; i < taskIds.length; ++i) {
            fee += _feeOf(taskIds[i], amounts[i]);
        }
        emit Split(id, server, amount, fee);
        for (uint256 i = 0; i < taskIds.length; ++i) {
            if (amounts[i] > 0) _sell(taskIds[i], server, amounts[i]);
        }
    }

    function _sell(uint256 taskId, address server, uint256 amount) private returns (uint256 fee) {
        fee = _feeOf(taskId, amount);
        emit Split(taskId, server, amount, fee);
        _add(taskId, server, amount - fee);
    }

    function _feeOf(uint256 taskId, uint256 amount) private view returns (uint256) {
        return amount * _terms[taskId].server / PERCENT;
    }

    /// @dev Counts money that is here, or comes within this call.
    function _add(uint256 taskId, address payer, uint256 amount) private {
        _requireMinted(taskId);
        uint256 before = paid[taskId];
        uint256 total = before + amount;
        if (total <= before) revert AmountIsZero();
        paid[taskId] = total;
        emit Paid(taskId, payer, amount, total);
    }

    function _requireForSale(uint256 id) internal view override {
        if (!_isEnsemble(id)) _requireMinted(id);
    }

    function _requireMinted(uint256 taskId) private view {
        if (!_mintings[taskId].isDone) revert NotMinted(taskId);
    }

    function _gainOf(uint256 taskId) internal view override returns (uint256) {
        _requireMinted(taskId);
        return _mintings[taskId].gain;
    }

    /// @inheritdoc IModelShares
    function claim(uint256 taskId) external returns (uint256 amount) {
        amount = _take(taskId, msg.sender);
        token.safeTransfer(msg.sender, amount);
    }

    /// @inheritdoc IModelShares
    function claimForPool(uint256[] calldata taskIds, address node, IStaking.Role role)
        external
        returns (uint256 amount)
    {
        address pool = poolAddress(node, role);
        for (uint256 i = 0; i < taskIds.length; ++i) {
            amount += _take(taskIds[i], pool);
        }
        staking.give(node, role, amount);
    }

    function _take(uint256 taskId, address holder) private returns (uint256 amount) {
        _settle(taskId, holder);
        Account storage account = _accounts[taskId][holder];
        amount = account.earnedX64 / WHOLE;
        if (amount == 0) revert NothingToClaim(taskId, holder);
        account.earnedX64 %= WHOLE;
        emit Claimed(taskId, holder, amount);
    }

    /// @dev Brings a holder up to all payments, before its parts change.
    function _settle(uint256 taskId, address holder) private {
        _accounts[taskId][holder] = _settled(taskId, holder);
    }

    function _settled(uint256 taskId, address holder) private view returns (Account memory account) {
        account = _accounts[taskId][holder];
        uint256 total = paid[taskId];
        account.earnedX64 += balanceOf(holder, taskId) * (total - account.seen);
        account.seen = total;
    }

    /// @dev Without a call to the receiver.
    function _move(address from, address to, uint256 taskId, uint256 parts) private {
        (uint256[] memory ids, uint256[] memory values) = (new uint256[](1), new uint256[](1));
        (ids[0], values[0]) = (taskId, parts);
        _update(from, to, ids, values);
    }

    function _update(address from, address to, uint256[] memory ids, uint256[] memory values) internal override {
        for (uint256 i = 0; i < ids.length; ++i) {
            if (from != address(0)) _settle(ids[i], from);
            _settle(ids[i], to);
        }
        super._update(from, to, ids, values);
    }

    // Views.

    /// @inheritdoc IModelShares
    function poolAddress(address node, IStaking.Role role) public view returns (address) {
        return address(uint160(uint256(keccak256(abi.encode(address(this), node, role)))));
    }

    /// @inheritdoc IModelShares
    function tillOf(uint256 taskId, address server) public view returns (address) {
        return Clones.predictDeterministicAddress(address(till), _salt(taskId, server));
    }

    function _salt(uint256 taskId, address server) private pure returns (bytes32) {
        return keccak256(abi.encode(taskId, server));
    }

    /// @inheritdoc IModelShares
    function termsOf(uint256 taskId) external view returns (Terms memory) {
        if (!_isKnown(taskId)) revert TermsUnknown(taskId);
        return _terms[taskId];
    }

    /// @inheritdoc IModelShares
    function minting(uint256 taskId) external view returns (Minting memory) {
        return _mintings[taskId];
    }

    /// @inheritdoc IModelShares
    function claimable(uint256 taskId, address holder) external view returns (uint256) {
        return _settled(taskId, holder).earnedX64 / WHOLE;
    }
}
