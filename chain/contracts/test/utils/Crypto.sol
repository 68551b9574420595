// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Bls12381, G1} from "../../src/libraries/Bls12381.sol";
import {Kzg} from "../../src/libraries/Kzg.sol";

/// @notice BLS keys and signatures, as a voter makes them.
library Signer {
    bytes private constant G2_GENERATOR =
        hex"00000000000000000000000000000000024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb80000000000000000000000000000000013e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e000000000000000000000000000000000ce5d527727d6e118cc9cdc6da2e351aadfd9baa8cbdd3a76d429a695160d12c923ac9cc3baca289e193548608b82801000000000000000000000000000000000606c4a02ea734cc32acd2b02bc28b99cb3e287e85a763af267492ab572e99ab3f370d275cec1da1aaa9075ff05f79be";

    function publicKey(uint256 secret) internal view returns (bytes memory key) {
        (, key) = address(0x0e).staticcall(bytes.concat(G2_GENERATOR, bytes32(secret)));
    }

    function sign(uint256 secret, bytes memory message, bytes memory domain) internal view returns (bytes memory) {
        return abi.encode(Points.times(Bls12381.hashToG1(message, domain), secret));
    }
}

/// @notice Arithmetic on points of G1.
library Points {
    function generator() internal pure returns (G1 memory) {
        return Bls12381.generator();
    }

    function times(G1 memory point, uint256 scalar) internal view returns (G1 memory) {
        return Bls12381.weightedSum(abi.encode(point, scalar));
    }

    function plus(G1 memory left, G1 memory right) internal view returns (G1 memory) {
        return Bls12381.weightedSum(abi.encode(left, uint256(1), right, uint256(1)));
    }

    /// @dev From a row of points of 128 bytes each.
    function pointAt(bytes memory points, uint256 index) internal pure returns (G1 memory point) {
        assembly ("memory-safe") {
            mcopy(point, add(add(points, 32), mul(index, 128)), 128)
        }
    }

    function negated(G1 memory point) internal view returns (G1 memory) {
        return times(point, Bls12381.ORDER - 1);
    }
}

/// @notice f(X) = constant + slope * X: the smallest polynomial whose value depends on X.
struct Line {
    uint256 constant_;
    uint256 slope;
}

/// @notice Commitments to lines. They only need the first power of the ceremony.
library Lines {
    /// @dev The digest that every hospital states of the model that it trained from.
    bytes32 internal constant BASE = keccak256("the model before");

    function tau() internal pure returns (G1 memory) {
        return G1({
            xHigh: 0x0d3eb50121139aa34db1d545093ac937,
            xLow: 0x4ab7bca2c0f3bf28e27c8dcd8fc7cb42d25926fc0c97b336e9f0fb35e5a04c81,
            yHigh: 0x17de623f59a3043952d2f637a935fae1,
            yLow: 0x4b6dee8b255e526304963d58ab6f1a827c7de623d34d394f8a3d0f57d6e972b9
        });
    }

    function from(bytes memory seed) internal pure returns (Line memory) {
        return Line({
            constant_: uint256(keccak256(bytes.concat("constant", seed))) % Bls12381.ORDER,
            slope: uint256(keccak256(bytes.concat("slope", seed))) % Bls12381.ORDER
        });
    }

    function point(Line memory line) internal view returns (G1 memory) {
        return Bls12381.weightedSum(abi.encode(Points.generator(), line.constant_, tau(), line.slope));
    }

    function compressed(Line memory line) internal view returns (bytes memory) {
        return Bls12381.compress(point(line));
    }

    function hash(Line memory line) internal view returns (bytes32) {
        return Kzg.versionedHash(compressed(line));
    }

    function addWeighted(Line memory sum, Line memory line, uint256 weight) internal pure {
        sum.constant_ = addmod(sum.constant_, mulmod(line.constant_, weight, Bls12381.ORDER), Bls12381.ORDER);
        sum.slope = addmod(sum.slope, mulmod(line.slope, weight, Bls12381.ORDER), Bls12381.ORDER);
    }
}
