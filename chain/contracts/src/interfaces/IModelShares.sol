// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "./IStaking.sol";

/// @title The parts of a finished model that each party of its task earned, and the money that they bring.
/// @notice The token's id is the task's number, and the parts of a task are always 2^64. The operator has its percent
///         of them. Trainers share theirs by what they earned in the task's rounds (`ITaskSettlement.explain`), and so
///         do voters. All divisions round down, and the operator gets the rest.
///
///         The percentages are the last lines of the task file, which every hospital read before it joined: nobody can
///         sell a model whose file has no such lines.
interface IModelShares {
    /// @notice Percentages of each payment, which add up to 100. `server` goes to the account that serves the model,
    ///         and has no parts. The others split what remains.
    struct Terms {
        uint8 server;
        uint8 operator;
        uint8 trainers;
        uint8 voters;
    }

    /// @notice How far the minting of a task is.
    struct Minting {
        bool isDone;
        uint16 round; // whose rewards are counted next; 0 once all are
        uint16 next; // index of the next account: first hospitals, then voters
        uint96 trainersEarned; // so far
        uint96 votersEarned;
        uint96 given; // parts minted so far
        uint96 gain; // sum over rounds so far of the accepted cohorts' mean median (`Gains`), in millionths of the metric
    }

    event TermsShown(uint256 indexed taskId, uint8 server, uint8 operator, uint8 trainers, uint8 voters);
    /// @notice All parts of the task are minted.
    event Minted(uint256 indexed taskId);
    /// @param total all that was ever paid for the task, with this.
    event Paid(uint256 indexed taskId, address indexed payer, uint256 amount, uint256 total);
    /// @notice A sale. One of an ensemble has its own event of the whole, and then one of each member that got a part.
    /// @param amount that the till had or vouchers moved, of which the server got `fee`.
    event Split(uint256 indexed taskId, address indexed server, uint256 amount, uint256 fee);
    event Claimed(uint256 indexed taskId, address indexed holder, uint256 amount);

    /// @notice Some percentage is missing: the four must add up to 100, and the server's must be below that.
    error TermsInvalid(Terms terms);
    /// @notice These are not the task file's bytes with these terms as its last lines.
    error NotTheFile(uint256 taskId, bytes32 specHash, bytes32 given);
    /// @notice Call `showTerms` first, with the task's file. A file without a [sale] section has none.
    error TermsUnknown(uint256 taskId);
    error TermsKnown(uint256 taskId);
    /// @notice Parts are counted when the task is over.
    error NotEnded(uint256 taskId);
    /// @notice No hospital was paid, so there is no model to sell.
    error NothingEarned(uint256 taskId);
    error AlreadyMinted(uint256 taskId);
    /// @notice Call `mint` until it is done.
    error NotMinted(uint256 taskId);
    error AmountIsZero();
    error NothingToClaim(uint256 taskId, address holder);

    /// @notice Shows the terms of a task by its file. Anyone may call, at any time.
    /// @param head the file's bytes before the line "[sale]", with the line feed before it.
    function showTerms(uint256 taskId, bytes calldata head, Terms calldata terms) external;
    /// @notice Mints the parts of an ended task, in pages. Anyone may call, until it is done.
    /// @param steps the most rewards that are read, and parts that are given, in this call.
    function mint(uint256 taskId, uint256 steps) external;
    /// @notice Pays the holders of the task's parts, from the sender's tokens, by its allowance.
    function pay(uint256 taskId, uint256 amount) external;
    /// @notice Empties a server's till: the server gets its percent, rounded down, and the holders the rest. Anyone may
    ///         call.
    function split(uint256 taskId, address server) external returns (uint256 amount, uint256 fee);
    /// @notice Pays out the sender's money.
    function claim(uint256 taskId) external returns (uint256 amount);
    /// @notice Hands a node's money from these tasks over to its pool, where it vests: the owner gets its commission, and
    ///         delegators share the rest (`IStaking.give`). Anyone may call.
    function claimForPool(uint256[] calldata taskIds, address node, IStaking.Role role)
        external
        returns (uint256 amount);

    function termsOf(uint256 taskId) external view returns (Terms memory);
    function minting(uint256 taskId) external view returns (Minting memory);
    /// @notice The holder of a node's parts. No key belongs to this address, so the parts cannot be moved: they are the
    ///         node's and its delegators'.
    function poolAddress(address node, IStaking.Role role) external view returns (address);
    /// @notice The address to which buyers pay for predictions that this server makes by the task's model. It needs no
    ///         deployment before its first payment. No key belongs to it, and `split` alone takes its money.
    function tillOf(uint256 taskId, address server) external view returns (address);
    /// @notice All that was ever paid for a task's parts.
    function paid(uint256 taskId) external view returns (uint256);
    function claimable(uint256 taskId, address holder) external view returns (uint256);
}
