// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @title Deposits of buyers, out of which they pay a server for many predictions by signed vouchers.
/// @notice A channel belongs to a buyer, a task and a server. A voucher states all that the buyer owes there since the
///         channel's first deposit: each one replaces the one before, and only the last must reach the chain. A server
///         redeems the vouchers of many buyers at once, and what they add up to is split once. `taskId` can be an
///         ensemble's number everywhere.
interface IChannels {
    /// @notice Amounts in the token's smallest unit, of the channel's whole time.
    struct Channel {
        uint96 deposited; // less what was withdrawn
        uint96 redeemed; // <= deposited
        uint64 closesAt; // time in seconds from which the buyer can withdraw; 0 while it is open
    }

    /// @param amount all that the buyer owes in this channel, with what was redeemed before.
    /// @param expiresAt time in seconds until which it can be redeemed.
    /// @param signature the buyer's, 65 bytes, of the EIP-712 struct
    ///        Voucher(address buyer,address server,uint256 taskId,uint256 amount,uint256 expiresAt).
    struct Voucher {
        address buyer;
        uint96 amount;
        uint64 expiresAt;
        bytes signature;
    }

    /// @notice A buyer's consent to a deposit, by ERC-3009's `receiveWithAuthorization`. Its nonce is
    ///         `depositNonce(taskId, server, salt)`, so the money can go into no other channel.
    struct Authorization {
        uint256 validAfter;
        uint256 validBefore;
        bytes32 salt;
        uint8 v;
        bytes32 r;
        bytes32 s;
    }

    /// @notice A server offers predictions by a task's model.
    /// @param price of one prediction, in the token's smallest unit; 0 withdraws the offer.
    /// @param url of the service.
    event Offered(uint256 indexed taskId, address indexed server, uint256 price, string url);
    /// @param deposited of the channel, with this.
    event Deposited(
        uint256 indexed taskId, address indexed server, address indexed buyer, uint256 amount, uint256 deposited
    );
    /// @param redeemed of the channel, with this.
    event Redeemed(
        uint256 indexed taskId, address indexed server, address indexed buyer, uint256 amount, uint256 redeemed
    );
    event Closing(uint256 indexed taskId, address indexed server, address indexed buyer, uint256 closesAt);
    event Withdrawn(uint256 indexed taskId, address indexed server, address indexed buyer, uint256 amount);

    error UrlTooLong(uint256 bytes_, uint256 atMost);
    /// @notice Not the buyer's signature of this voucher for this server and task, on this chain and contract.
    error VoucherForged(address buyer, address signer);
    error VoucherExpired(address buyer, uint256 expiresAt);
    /// @notice This voucher, or a later one, is redeemed already.
    error VoucherSpent(address buyer, uint256 amount, uint256 redeemed);
    error DepositTooSmall(address buyer, uint256 amount, uint256 deposited);
    /// @notice Call `close` first, and wait until this time.
    error ChannelOpen(uint256 closesAt);
    /// @notice The token moved another amount than it was told to.
    error AmountDiffers(uint256 amount, uint256 arrived);

    /// @notice Tells buyers of a service, by an event. Anyone may: a buyer checks each receipt.
    function offer(uint256 taskId, uint256 price, string calldata url) external;
    /// @notice Adds to the sender's channel, from its tokens, by its allowance. This opens a closing channel again.
    function deposit(uint256 taskId, address server, uint96 amount) external;
    /// @notice Adds to a buyer's channel by its signature. Anyone may call, so the buyer needs no ether.
    function depositFor(
        address buyer,
        uint256 taskId,
        address server,
        uint96 amount,
        Authorization calldata authorization
    ) external;
    /// @notice Redeems vouchers of a server's buyers: the server gets its percent of the sum, rounded down, and the holders
    ///         of the task's parts the rest. Anyone may call. A voucher that is spent or expired, or exceeds its deposit,
    ///         moves nothing; if none moves anything, the first one's error is given. A forged one refuses all.
    function redeem(uint256 taskId, address server, Voucher[] calldata vouchers)
        external
        returns (uint256 amount, uint256 fee);
    /// @notice Begins to close the sender's channel. Its server has a day to redeem its last voucher.
    function close(uint256 taskId, address server) external;
    /// @notice Takes what is left of the sender's channel, a day after `close`. Its vouchers that are not redeemed count
    ///         against a later deposit, until they expire.
    function withdraw(uint256 taskId, address server) external returns (uint256 amount);

    function channel(uint256 taskId, address server, address buyer) external view returns (Channel memory);
    function depositNonce(uint256 taskId, address server, bytes32 salt) external view returns (bytes32);
    function voucherDigest(uint256 taskId, address server, address buyer, uint256 amount, uint256 expiresAt)
        external
        view
        returns (bytes32);
}
