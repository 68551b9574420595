// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @title Proof of possession of hospitals' Flower node keys, on P-256.
/// @notice The signature names the account, so nobody joins with another's key or with a copied signature.
library TransportKeys {
    bytes32 private constant DOMAIN = keccak256("CONSILIUM-V1-TRANSPORT-KEY");
    uint256 internal constant LENGTH = 64; // two coordinates, or the two halves of a signature
    /// @dev P256VERIFY (EIP-7951, RIP-7212): hash, r, s, x, y; answers 1, or nothing.
    address private constant P256_VERIFY = address(0x100);

    /// @notice The message that the key signs (ECDSA with SHA-256).
    function message(uint256 taskId, address hospital, bytes calldata key) internal view returns (bytes memory) {
        return abi.encode(DOMAIN, block.chainid, address(this), taskId, hospital, keccak256(key));
    }

    /// @notice True if the key is a point of the curve and made this signature on `message`.
    function isHeldBy(uint256 taskId, address hospital, bytes calldata key, bytes calldata signature)
        internal
        view
        returns (bool)
    {
        if (key.length != LENGTH || signature.length != LENGTH) return false;
        bytes memory input = bytes.concat(sha256(message(taskId, hospital, key)), signature, key);
        (bool ok, bytes memory answer) = P256_VERIFY.staticcall(input);
        return ok && answer.length == 32 && abi.decode(answer, (uint256)) == 1;
    }
}
