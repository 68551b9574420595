// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC3009} from "@openzeppelin/contracts/interfaces/draft-IERC3009.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {IChannels} from "../interfaces/IChannels.sol";

/// @title Channels of buyers, and their vouchers.
/// @dev Only accounts with a key can sign vouchers: a contract could take its consent back between the prediction and
///      the redemption.
abstract contract Channels is IChannels, EIP712 {
    using SafeERC20 for IERC20;

    uint256 public constant CLOSING = 1 days;
    uint256 private constant MOST_URL = 256; // bytes
    bytes32 private constant VOUCHER =
        keccak256("Voucher(address buyer,address server,uint256 taskId,uint256 amount,uint256 expiresAt)");

    IERC20 public immutable token;
    mapping(uint256 taskId => mapping(address server => mapping(address buyer => Channel))) private _channels;

    constructor(IERC20 token_) EIP712("Consilium model shares", "1") {
        token = token_;
    }

    /// @inheritdoc IChannels
    function offer(uint256 taskId, uint256 price, string calldata url) external {
        _requireForSale(taskId);
        if (bytes(url).length > MOST_URL) revert UrlTooLong(bytes(url).length, MOST_URL);
        emit Offered(taskId, msg.sender, price, url);
    }

    // Deposits.

    /// @inheritdoc IChannels
    function deposit(uint256 taskId, address server, uint96 amount) external {
        _deposit(taskId, server, msg.sender, amount);
        _pull(msg.sender, amount);
    }

    /// @inheritdoc IChannels
    function depositFor(
        address buyer,
        uint256 taskId,
        address server,
        uint96 amount,
        Authorization calldata authorization
    ) external {
        _deposit(taskId, server, buyer, amount);
        uint256 before = token.balanceOf(address(this));
        IERC3009(address(token))
            .receiveWithAuthorization(
                buyer,
                address(this),
                amount,
                authorization.validAfter,
                authorization.validBefore,
                depositNonce(taskId, server, authorization.salt),
                authorization.v,
                authorization.r,
                authorization.s
            );
        _requireArrived(before, amount);
    }

    function _deposit(uint256 taskId, address server, address buyer, uint96 amount) private {
        _requireForSale(taskId);
        Channel storage own = _channels[taskId][server][buyer];
        own.deposited += amount;
        own.closesAt = 0;
        emit Deposited(taskId, server, buyer, amount, own.deposited);
    }

    // Vouchers.

    /// @inheritdoc IChannels
    function redeem(uint256 taskId, address server, Voucher[] calldata vouchers)
        external
        returns (uint256 amount, uint256 fee)
    {
        for (uint256 i = 0; i < vouchers.length; ++i) {
            amount += _redeem(taskId, server, vouchers[i], false);
        }
        if (amount == 0 && vouchers.length > 0) _redeem(taskId, server, vouchers[0], true);
        fee = _addSale(taskId, server, amount);
        if (fee > 0) token.safeTransfer(server, fee);
    }

    /// @dev A voucher that its buyer, a stranger or time made worthless meanwhile moves nothing. Refused by name it would
    ///      keep the server from all others' money, for the gas of one transaction before each redemption.
    function _redeem(uint256 taskId, address server, Voucher calldata voucher, bool mustMove)
        private
        returns (uint256 amount)
    {
        (address buyer, uint96 owed) = (voucher.buyer, voucher.amount);
        bytes32 digest = voucherDigest(taskId, server, buyer, owed, voucher.expiresAt);
        (address signer,,) = ECDSA.tryRecoverCalldata(digest, voucher.signature);
        if (signer != buyer || buyer == address(0)) revert VoucherForged(buyer, signer);
        Channel storage own = _channels[taskId][server][buyer];
        (uint96 deposited, uint96 redeemed) = (own.deposited, own.redeemed);
        if (block.timestamp > voucher.expiresAt || owed <= redeemed || owed > deposited) {
            if (!mustMove) return 0;
            if (block.timestamp > voucher.expiresAt) revert VoucherExpired(buyer, voucher.expiresAt);
            if (owed <= redeemed) revert VoucherSpent(buyer, owed, redeemed);
            revert DepositTooSmall(buyer, owed, deposited);
        }
        own.redeemed = owed;
        amount = owed - redeemed;
        emit Redeemed(taskId, server, buyer, amount, owed);
    }

    // Closing.

    /// @inheritdoc IChannels
    function close(uint256 taskId, address server) external {
        uint64 closesAt = uint64(block.timestamp + CLOSING);
        _channels[taskId][server][msg.sender].closesAt = closesAt;
        emit Closing(taskId, server, msg.sender, closesAt);
    }

    /// @inheritdoc IChannels
    function withdraw(uint256 taskId, address server) external returns (uint256 amount) {
        Channel storage own = _channels[taskId][server][msg.sender];
        uint64 closesAt = own.closesAt;
        if (closesAt == 0 || block.timestamp < closesAt) revert ChannelOpen(closesAt);
        amount = own.deposited - own.redeemed;
        (own.deposited, own.closesAt) = (own.redeemed, 0);
        emit Withdrawn(taskId, server, msg.sender, amount);
        if (amount > 0) token.safeTransfer(msg.sender, amount);
    }

    // Money.

    /// @dev Takes an account's tokens by its allowance, and never counts more than arrived.
    function _pull(address from, uint256 amount) internal {
        uint256 before = token.balanceOf(address(this));
        token.safeTransferFrom(from, address(this), amount);
        _requireArrived(before, amount);
    }

    function _requireArrived(uint256 before, uint256 amount) internal view {
        uint256 balance = token.balanceOf(address(this));
        if (balance != before + amount) revert AmountDiffers(amount, balance - before);
    }

    /// @dev Splits a sale. The money is here. Returns the server's fee, which is not yet paid.
    function _addSale(uint256 taskId, address server, uint256 amount) internal virtual returns (uint256 fee);

    /// @dev Refuses a number that is neither a task's with parts nor an ensemble's.
    function _requireForSale(uint256 taskId) internal view virtual;

    // Views.

    /// @inheritdoc IChannels
    function channel(uint256 taskId, address server, address buyer) external view returns (Channel memory) {
        return _channels[taskId][server][buyer];
    }

    /// @inheritdoc IChannels
    function depositNonce(uint256 taskId, address server, bytes32 salt) public pure returns (bytes32) {
        return keccak256(abi.encode(taskId, server, salt));
    }

    /// @inheritdoc IChannels
    function voucherDigest(uint256 taskId, address server, address buyer, uint256 amount, uint256 expiresAt)
        public
        view
        returns (bytes32)
    {
        return _hashTypedDataV4(keccak256(abi.encode(VOUCHER, buyer, server, taskId, amount, expiresAt)));
    }
}
