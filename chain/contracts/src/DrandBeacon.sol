// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {IBeacon} from "./interfaces/IBeacon.sol";
import {Bls12381, G1} from "./libraries/Bls12381.sol";

/// @title Randomness from a drand chain: the threshold signature of its nodes on one fixed, later round.
/// @notice A request is a round's number. Its proof is that round's signature, a point of G1 (EIP-2537, 128 bytes).
///         Each round has exactly one signature, so nobody can choose the value. Fewer nodes than the threshold cannot
///         know it before the round starts. It stays provable forever.
/// @dev For chains of drand's scheme bls-unchained-g1-rfc9380: key in G2, signature in G1, on sha256 of the round as
///      eight bytes. The values of quicknet, which the League of Entropy runs (chain hash
///      52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971, as every relay serves under /info):
///
///      genesis    1692803367 (2023-08-23 15:09:27 UTC)
///      period     3 seconds
///      key        83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d106451
///                 0d1fec758c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a
///
///      The key is compressed here; the constructor takes it in EIP-2537 encoding. `consilium_zk.drand.QUICKNET` has
///      both.
contract DrandBeacon is IBeacon {
    /// @notice Period and look-ahead must be at least a second: otherwise requested values could be known already.
    error ScheduleInvalid(uint256 period, uint256 lookahead);
    /// @notice The key is not a point of G2, is outside its subgroup, or is the identity.
    error KeyInvalid();

    /// @dev The scheme fixes it (RFC 9380, BLS12381G1_XMD:SHA-256_SSWU_RO_, IETF BLS basic ciphersuite).
    bytes private constant DOMAIN = "BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_";

    /// @notice The start of round 1, in seconds of Unix time.
    uint256 public immutable genesis;
    /// @notice Seconds from one round to the next.
    uint256 public immutable period;
    /// @notice Seconds between a request and the earliest start of its round.
    uint256 public immutable lookahead;

    // The key as words of code: 8 pushes, where storage would cost 16,800 gas and a contract of its own 2,600.
    uint256 private immutable _key0;
    uint256 private immutable _key1;
    uint256 private immutable _key2;
    uint256 private immutable _key3;
    uint256 private immutable _key4;
    uint256 private immutable _key5;
    uint256 private immutable _key6;
    uint256 private immutable _key7;

    /// @param key of the drand chain: x.c0, x.c1, y.c0, y.c1, each padded to 64 bytes (EIP-2537, 256 bytes).
    /// @param lookahead_ seconds. It must exceed the time by which a block's timestamp may precede the moment at which
    ///        nobody can change the block any more: a proposer of n successive slots may hold blocks back that long, a
    ///        sequencer as long as its chain may lag. Add the time by which drand nodes with fast clocks may sign
    ///        early. Otherwise the requester could know the value already.
    constructor(uint256 genesis_, uint256 period_, bytes memory key, uint256 lookahead_) {
        if (period_ == 0 || lookahead_ == 0) revert ScheduleInvalid(period_, lookahead_);
        if (!_isKey(key)) revert KeyInvalid();
        (genesis, period, lookahead) = (genesis_, period_, lookahead_);
        (_key0, _key1, _key2, _key3, _key4, _key5, _key6, _key7) =
            abi.decode(key, (uint256, uint256, uint256, uint256, uint256, uint256, uint256, uint256));
    }

    /// @inheritdoc IBeacon
    function request() external view returns (uint256) {
        uint256 earliest = block.timestamp + lookahead;
        return earliest <= genesis ? 1 : Math.ceilDiv(earliest - genesis, period) + 1;
    }

    /// @inheritdoc IBeacon
    function seed(uint256 request_, bytes calldata proof) external view returns (bytes32) {
        if (request_ > _started()) revert SeedNotReady(request_);
        if (proof.length != Bls12381.G1_LENGTH) revert SeedProofInvalid(request_);
        G1 memory signature = abi.decode(proof, (G1));
        // The number of a round that has started fits 64 bits, as timestamps do.
        bytes32 message = sha256(abi.encodePacked(uint64(request_)));
        // Only the identity key has the identity as a signature. The pairing refuses points outside the subgroup.
        bool signed = Bls12381.signs(signature, Bls12381.hashToG1(bytes.concat(message), DOMAIN), publicKey());
        if (!signed) revert SeedProofInvalid(request_);
        return keccak256(abi.encode(sha256(Bls12381.compress(signature)), request_));
    }

    /// @inheritdoc IBeacon
    function expired(uint256) external pure returns (bool) {
        return false;
    }

    /// @notice The drand chain's key, EIP-2537, 256 bytes.
    function publicKey() public view returns (bytes memory) {
        return abi.encode(_key0, _key1, _key2, _key3, _key4, _key5, _key6, _key7);
    }

    /// @dev The number of rounds that have started; round 1 starts at genesis.
    function _started() private view returns (uint256) {
        return block.timestamp < genesis ? 0 : (block.timestamp - genesis) / period + 1;
    }

    /// @dev The identity is every key's signature on the identity, so the pairing only tells if the key is a point of
    ///      G2.
    function _isKey(bytes memory key) private view returns (bool) {
        if (key.length != Bls12381.G2_LENGTH || keccak256(key) == keccak256(new bytes(Bls12381.G2_LENGTH))) {
            return false;
        }
        G1 memory identity;
        return Bls12381.signs(identity, identity, key);
    }
}
