// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IChannels} from "../../src/interfaces/IChannels.sol";
import {SharesFixture} from "./SharesFixture.sol";

/// @notice Buyers with keys, and their vouchers for one server.
abstract contract ChannelsFixture is SharesFixture {
    address internal constant SERVER = address(0x30006);
    uint256 internal constant KEY = 0xB0B; // of the first buyer; the others' follow it
    bytes32 internal constant DOMAIN =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");

    function _buyer(uint256 i) internal pure returns (address) {
        return vm.addr(KEY + i);
    }

    /// @dev By the text of EIP-712 rather than by the contract's own code.
    function _digest(
        uint256 chain,
        address shares,
        uint256 task,
        address server,
        address buyer,
        uint256 amount,
        uint256 time
    ) internal pure returns (bytes32) {
        bytes32 domain = keccak256(
            abi.encode(DOMAIN, keccak256("Consilium model shares"), keccak256("1"), chain, shares)
        );
        bytes32 kind =
            keccak256("Voucher(address buyer,address server,uint256 taskId,uint256 amount,uint256 expiresAt)");
        return
            keccak256(bytes.concat("\x19\x01", domain, keccak256(abi.encode(kind, buyer, server, task, amount, time))));
    }

    function _signed(uint256 key, bytes32 digest) internal pure returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, digest);
        return abi.encodePacked(r, s, v);
    }

    /// @dev A good voucher for the server `SERVER` and the task `id`.
    function _voucher(uint256 i, uint256 amount) internal view returns (IChannels.Voucher memory) {
        return _voucher(i, amount, uint64(block.timestamp + 1 days));
    }

    function _voucher(uint256 i, uint256 amount, uint64 time) internal view returns (IChannels.Voucher memory) {
        bytes32 digest = _digest(block.chainid, address(modelShares), id, SERVER, _buyer(i), amount, time);
        return IChannels.Voucher(_buyer(i), uint96(amount), time, _signed(KEY + i, digest));
    }

    function _only(IChannels.Voucher memory voucher) internal pure returns (IChannels.Voucher[] memory list) {
        list = new IChannels.Voucher[](1);
        list[0] = voucher;
    }

    function _redeem(uint256 i, uint256 amount) internal returns (uint256 moved, uint256 fee) {
        return modelShares.redeem(id, SERVER, _only(_voucher(i, amount)));
    }

    function _deposit(uint256 i, uint256 amount) internal {
        token.transfer(_buyer(i), amount);
        vm.startPrank(_buyer(i));
        token.approve(address(modelShares), amount);
        modelShares.deposit(id, SERVER, uint96(amount));
        vm.stopPrank();
    }
}
