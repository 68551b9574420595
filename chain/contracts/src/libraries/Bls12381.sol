// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice A point of G1 in the encoding of EIP-2537: two coordinates of 64 bytes, big-endian, 128 bytes in all.
///         The point at infinity is all zeros.
struct G1 {
    uint256 xHigh;
    uint256 xLow;
    uint256 yHigh;
    uint256 yLow;
}

/// @title BLS12-381 over the precompiles of EIP-2537.
/// @dev A precompile that refuses its input burns all gas it was given, so each gets only its maximal cost.
library Bls12381 {
    /// @notice A precompile refused points that no honest caller sends: off the curve, outside the subgroup, or
    ///         with coordinates that are not reduced.
    error PrecompileFailed(uint256 precompile);

    /// @dev The order of the groups. Scalars are below it.
    uint256 internal constant ORDER = 0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001;
    uint256 internal constant G1_LENGTH = 128;
    uint256 internal constant G2_LENGTH = 256;
    /// @dev A point and a scalar, as the multi-scalar multiplication takes them.
    uint256 internal constant TERM_LENGTH = 160;

    uint256 private constant MODEXP = 0x05;
    uint256 private constant G1_ADD = 0x0b;
    uint256 private constant G1_MSM = 0x0c;
    uint256 private constant PAIRING = 0x0f;
    uint256 private constant MAP_FP_TO_G1 = 0x10;

    uint256 private constant MODEXP_GAS = 4_000;
    uint256 private constant G1_ADD_GAS = 375;
    uint256 private constant G1_MUL_GAS = 12_000;
    uint256 private constant TWO_PAIRINGS_GAS = 102_900;
    uint256 private constant MAP_FP_TO_G1_GAS = 5_500;

    /// @dev The field's modulus p.
    uint256 private constant P_HIGH = 0x1a0111ea397fe69a4b1ba7b6434bacd7;
    uint256 private constant P_LOW = 0x64774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab;
    /// @dev (p - 1) / 2.
    uint256 private constant HALF_HIGH = 0x0d0088f51cbff34d258dd3db21a5d66b;
    uint256 private constant HALF_LOW = 0xb23ba5c279c2895fb39869507b587b120f55ffff58a9ffffdcff7fffffffd555;

    /// @dev The negated generator of G2.
    bytes private constant NEGATED_G2 =
        hex"00000000000000000000000000000000024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb80000000000000000000000000000000013e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e000000000000000000000000000000000d1b3cc2c7027888be51d9ef691d77bcb679afda66c73f17f9ee3837a55024f78c71363275a75d75d86bab79f74782aa0000000000000000000000000000000013fa4d4a0ad8b1ce186ed5061789213d993923066dddaf1040bc3ff59f825c78df74f2d75467e25e0f55f8a00fa030ed";

    /// @notice Writes one term of a `weightedSum`.
    function setTerm(bytes memory terms, uint256 index, G1 memory point, uint256 scalar) internal pure {
        assembly ("memory-safe") {
            let term := add(add(terms, 32), mul(index, 160))
            mcopy(term, point, 128)
            mstore(add(term, 128), scalar)
        }
    }

    /// @notice The sum of scalar multiples.
    /// @param terms points, each followed by its scalar: 160 bytes per term.
    function weightedSum(bytes memory terms) internal view returns (G1 memory) {
        (bool ok, bytes memory sum) = _call(G1_MSM, terms, terms.length / TERM_LENGTH * G1_MUL_GAS, G1_LENGTH);
        if (!ok) revert PrecompileFailed(G1_MSM);
        return abi.decode(sum, (G1));
    }

    /// @notice The point at an index in a row of points of 128 bytes each.
    function pointAt(bytes calldata points, uint256 index) internal pure returns (G1 memory) {
        return abi.decode(points[index * G1_LENGTH:][:G1_LENGTH], (G1));
    }

    /// @notice True if e(left, -G) · e(right, key) = 1, with G the generator of G2. False if an input is not a point of
    ///         its subgroup.
    function signs(G1 memory left, G1 memory right, bytes memory key) internal view returns (bool) {
        bytes memory input = bytes.concat(abi.encode(left), NEGATED_G2, abi.encode(right), key);
        (bool ok, bytes memory one) = _call(PAIRING, input, TWO_PAIRINGS_GAS, 32);
        return ok && uint256(bytes32(one)) == 1;
    }

    /// @notice Hash to G1 by RFC 9380, suite BLS12381G1_XMD:SHA-256_SSWU_RO_, under the caller's domain tag.
    function hashToG1(bytes memory message, bytes memory domain) internal view returns (G1 memory) {
        (bytes memory first, bytes memory second) = _hashToField(message, domain);
        bytes memory input = bytes.concat(_map(first), _map(second));
        // The map's precompile clears the cofactor of each point, which equals clearing that of the sum.
        (bool ok, bytes memory sum) = _call(G1_ADD, input, G1_ADD_GAS, G1_LENGTH);
        if (!ok) revert PrecompileFailed(G1_ADD);
        return abi.decode(sum, (G1));
    }

    function generator() internal pure returns (G1 memory) {
        return G1({
            xHigh: 0x17f1d3a73197d7942695638c4fa9ac0f,
            xLow: 0xc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb,
            yHigh: 0x08b3f481e3aaa0f1a09e30ed741d8ae4,
            yLow: 0xfcf5e095d5d00af600db18cb2c04b3edd03cc744a2888ae40caa232946c5e7e1
        });
    }

    /// @notice The 48 bytes of a KZG commitment: x, and flags for compression, infinity and y's sign.
    function compress(G1 memory point) internal pure returns (bytes memory) {
        if (isIdentity(point)) return bytes.concat(bytes16(0xc0000000000000000000000000000000), bytes32(0));
        uint256 flags = 0x80;
        if (point.yHigh > HALF_HIGH || (point.yHigh == HALF_HIGH && point.yLow > HALF_LOW)) flags = 0xa0;
        return abi.encodePacked(bytes16(uint128(point.xHigh | flags << 120)), point.xLow);
    }

    function isIdentity(G1 memory point) internal pure returns (bool) {
        return (point.xHigh | point.xLow | point.yHigh | point.yLow) == 0;
    }

    /// @dev Two field elements of 64 bytes each, from 128 bytes of expand_message_xmd.
    function _hashToField(bytes memory message, bytes memory domain)
        private
        view
        returns (bytes memory first, bytes memory second)
    {
        bytes memory tag = abi.encodePacked(domain, uint8(domain.length));
        bytes32 start = sha256(abi.encodePacked(bytes32(0), bytes32(0), message, uint16(128), uint8(0), tag));
        bytes32 one = sha256(abi.encodePacked(start, uint8(1), tag));
        bytes32 two = sha256(abi.encodePacked(start ^ one, uint8(2), tag));
        bytes32 three = sha256(abi.encodePacked(start ^ two, uint8(3), tag));
        bytes32 four = sha256(abi.encodePacked(start ^ three, uint8(4), tag));
        first = _reduce(one, two);
        second = _reduce(three, four);
    }

    /// @dev 64 bytes modulo p: the precompile raises them to the power of one.
    function _reduce(bytes32 high, bytes32 low) private view returns (bytes memory) {
        bytes memory input = abi.encodePacked(uint256(64), uint256(1), uint256(64), high, low, uint8(1), P_HIGH, P_LOW);
        (bool ok, bytes memory element) = _call(MODEXP, input, MODEXP_GAS, 64);
        if (!ok) revert PrecompileFailed(MODEXP);
        return element;
    }

    function _map(bytes memory element) private view returns (bytes memory) {
        (bool ok, bytes memory point) = _call(MAP_FP_TO_G1, element, MAP_FP_TO_G1_GAS, G1_LENGTH);
        if (!ok) revert PrecompileFailed(MAP_FP_TO_G1);
        return point;
    }

    function _call(uint256 precompile, bytes memory input, uint256 gasCap, uint256 outputLength)
        private
        view
        returns (bool ok, bytes memory output)
    {
        output = new bytes(outputLength);
        assembly ("memory-safe") {
            ok := staticcall(gasCap, precompile, add(input, 32), mload(input), add(output, 32), outputLength)
            ok := and(ok, eq(returndatasize(), outputLength))
        }
    }
}
