// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Bls12381, G1} from "./Bls12381.sol";

/// @notice The parts of a published blob besides the survivors' points.
struct Shown {
    bool isFlipped;
    uint256 first; // the sum's blinders
    uint256 second;
    G1 negatedDelta; // commitment to this blob of the negated delta
    uint256 weight; // of the survivors
    uint256 next; // the first term behind their points
}

/// @title Decoys: a secret bit says if a cohort's sum is published as it is or sign-flipped, and voters must
///        tell.
/// @notice Let w be the cohort's weight, h the quantiser's offset 2^(bits-1) - 1 and x the mean update in steps of the
///         quantiser. A lane of the sum is S = wh + wx. With the negated delta r, a published lane, without blinders,
///         is
///
///             as it is:  S + wh  =  2wh + wx        sign-flipped:  4wh - wr - S  =  2wh - wx - w·(r - h)
///
///         The negated delta depends on earlier rounds alone and is the same for all cohorts. No lane overflows into
///         the next, so both forms are linear in scalars, and in commitments. Flipping twice gives the sum back, so a
///         blob gives its reader both candidates. See `docs/decoys.md` and `consilium_zk/decoys.py`.
library Decoys {
    bytes32 private constant DOMAIN = keccak256("CONSILIUM-V1-CANARY");
    /// @dev The bits of a scalar that hold lanes.
    uint256 internal constant USABLE_BITS = 252;
    /// @dev The number of terms that `setTerms` writes.
    uint256 internal constant PLAIN_TERMS = 3;
    uint256 internal constant FLIPPED_TERMS = 4;

    /// @notice The commitment to the seed that says which sums are sign-flipped.
    function seedCommitment(bytes32 seed) internal pure returns (bytes32) {
        return keccak256(abi.encode(DOMAIN, seed));
    }

    /// @notice The commitment of the aggregator before it publishes.
    function commitment(bytes32 seedCommitment_, bytes32 negatedDelta) internal pure returns (bytes32) {
        return keccak256(abi.encode(seedCommitment_, negatedDelta));
    }

    function isFlipped(bytes32 seed, uint256 taskId, uint256 round, uint256 cohort) internal pure returns (bool) {
        return uint256(keccak256(abi.encode(DOMAIN, seed, taskId, round, cohort))) & 1 == 1;
    }

    /// @notice The highest value of a published lane: 4wh.
    function highest(uint256 bits, uint256 weight) internal pure returns (uint256) {
        return 4 * weight * _offset(bits);
    }

    /// @notice Writes the terms behind the survivors' points, or behind their negatives if the sum is sign-flipped.
    ///         With them all terms add up to the published blob's commitment.
    function setTerms(bytes memory terms, Shown memory shown, uint256 bits, uint256 laneBits) internal pure {
        uint256 order = Bls12381.ORDER;
        uint256 times = shown.isFlipped ? 4 : 1;
        uint256 level = mulmod(times * shown.weight * _offset(bits), _ones(laneBits), order);
        (uint256 first, uint256 second) = (shown.first % order, shown.second % order);
        if (!shown.isFlipped) (first, second) = (order - first, order - second);
        // The generator commits to a one in every scalar, so the level is taken off the two blinders' scalars again.
        Bls12381.setTerm(terms, shown.next, Bls12381.generator(), level);
        Bls12381.setTerm(terms, shown.next + 1, _firstBlinder(), addmod(first, order - level, order));
        Bls12381.setTerm(terms, shown.next + 2, _secondBlinder(), addmod(second, order - level, order));
        if (shown.isFlipped) Bls12381.setTerm(terms, shown.next + 3, shown.negatedDelta, order - shown.weight);
    }

    /// @dev The quantised value of zero.
    function _offset(uint256 bits) private pure returns (uint256) {
        return (1 << (bits - 1)) - 1;
    }

    /// @dev A scalar with one in each of its lanes.
    function _ones(uint256 laneBits) private pure returns (uint256 ones) {
        for (uint256 lane = USABLE_BITS / laneBits; lane > 0; --lane) {
            ones = ones << laneBits | 1;
        }
    }

    /// @dev The commitments to a one in scalar 4094 and in scalar 4095: from Ethereum's ceremony, `g1_lagrange` of
    ///      `trusted_setup.txt` in the order of a blob's scalars.
    function _firstBlinder() private pure returns (G1 memory) {
        return G1({
            xHigh: 0x16ee0b91313c68bac4aa9e065ce9e1d7,
            xLow: 0x7e51ca4cff31d6a438718c58264dee87674bd97fc5c6b8008be709521e4fd008,
            yHigh: 0x02a805de9525ba50d230253371322b7d,
            yLow: 0x4c0ca05e27732d1783515f3f809c13b5f924405655074cf2c86eb151d262cf39
        });
    }

    function _secondBlinder() private pure returns (G1 memory) {
        return G1({
            xHigh: 0x025a6f586726c68d45f00ad0f5a44365,
            xLow: 0x23317939a47713f78fd4fe81cd74236fdac1b04ecd97c2d0267d6f4981d7beb1,
            yHigh: 0x09a1275f9efcc1e3166cdea9eff740ac,
            yLow: 0x675d8ec22fc07467f17c933e66ef3502e44dc20dcefd2f29621de1b9f64400f9
        });
    }
}
