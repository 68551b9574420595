// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Bls12381, G1} from "../src/libraries/Bls12381.sol";
import {Decoys, Shown} from "../src/libraries/Decoys.sol";
import {Kzg} from "../src/libraries/Kzg.sol";
import {Test} from "./utils/Vm.sol";

/// @notice The library's commitments equal those of ckzg to blobs that were built lane by lane.
contract DecoysTest is Test {
    string private constant VECTORS = "../../tests/vectors/decoys.json";
    uint256 private constant CASES = 6;

    string private _json;

    function setUp() public {
        _json = vm.readFile(VECTORS);
    }

    function test_setTerms_givesBothHashesOfEveryBlob() public view {
        uint256 blobs;
        for (uint256 i = 0; i < CASES; ++i) {
            string memory key = _item(".cases", i);
            uint256 bits = _uint(key, ".bits");
            uint256 laneBits = _uint(key, ".lane_bits");
            uint256[] memory weights = vm.parseJsonUintArray(_json, string.concat(key, ".weights"));
            string memory blob = _item(string.concat(key, ".blobs"), 0);
            for (uint256 j = 0; vm.keyExistsJson(_json, blob); blob = _item(string.concat(key, ".blobs"), ++j)) {
                vm.assertEq(_hash(blob, weights, bits, laneBits, false), _word(blob, ".hash_as_it_is"));
                vm.assertEq(_hash(blob, weights, bits, laneBits, true), _word(blob, ".hash_flipped"));
                ++blobs;
            }
        }
        vm.assertEq(blobs, 11);
    }

    /// @dev Each input counts: any other value gives another hash.
    function test_setTerms_dependsOnEverythingThatIsDisclosed() public view {
        string memory key = _item(".cases", 2);
        string memory blob = string.concat(key, ".blobs[0]");
        uint256[] memory weights = vm.parseJsonUintArray(_json, string.concat(key, ".weights"));
        bytes memory points = vm.parseJsonBytes(_json, string.concat(blob, ".points"));
        for (uint256 i = 0; i < 2; ++i) {
            bool isFlipped = i == 1;
            bytes32 right = _word(blob, isFlipped ? ".hash_flipped" : ".hash_as_it_is");
            Shown memory shown = _shown(blob, isFlipped);
            vm.assertEq(_hash(shown, points, weights, 16, 25), right);
            shown.first += 1;
            vm.assertTrue(_hash(shown, points, weights, 16, 25) != right);
            (shown.first, shown.second) = (shown.first - 1, shown.second + 1);
            vm.assertTrue(_hash(shown, points, weights, 16, 25) != right);
            // Values that are congruent modulo the group's order are the same scalar.
            shown.second = shown.second - 1 + Bls12381.ORDER;
            vm.assertEq(_hash(shown, points, weights, 16, 25), right);
            vm.assertTrue(_hash(shown, points, weights, 16, 24) != right);
            vm.assertTrue(_hash(shown, points, weights, 15, 25) != right);
            shown.negatedDelta = Bls12381.generator();
            vm.assertTrue((_hash(shown, points, weights, 16, 25) == right) != isFlipped);
        }
    }

    function test_isFlipped_isTheLowestBitOfTheVectorsDigest() public view {
        uint256 flipped;
        for (uint256 i = 0; i < CASES; ++i) {
            string memory key = _item(".cases", i);
            (uint256 taskId, uint256 round, uint256 cohort) =
                (_uint(key, ".task"), _uint(key, ".round"), _uint(key, ".cohort"));
            bool expected = vm.parseJsonBool(_json, string.concat(key, ".flipped"));
            vm.assertTrue(Decoys.isFlipped(_word(key, ".seed"), taskId, round, cohort) == expected);
            if (expected) ++flipped;
        }
        vm.assertTrue(flipped > 0 && flipped < CASES);
    }

    function test_seedCommitment_isTheVectors() public view {
        for (uint256 i = 0; i < CASES; ++i) {
            string memory key = _item(".cases", i);
            bytes32 found = Decoys.seedCommitment(_word(key, ".seed"));
            vm.assertEq(found, _word(key, ".seed_commitment"));
        }
    }

    function test_highest_fitsTheVectorsLanes() public view {
        for (uint256 i = 0; i < CASES; ++i) {
            string memory key = _item(".cases", i);
            uint256[] memory weights = vm.parseJsonUintArray(_json, string.concat(key, ".weights"));
            uint256 weight;
            for (uint256 j = 0; j < weights.length; ++j) {
                weight += weights[j];
            }
            vm.assertEq(Decoys.highest(_uint(key, ".bits"), weight) >> _uint(key, ".lane_bits"), 0);
        }
        vm.assertEq(Decoys.highest(16, 256), 4 * 256 * uint256(32_767));
    }

    function test_generator_isTheVectors() public view {
        vm.assertEq(abi.encode(Bls12381.generator()), vm.parseJsonBytes(_json, ".generator"));
    }

    function _hash(string memory blob, uint256[] memory weights, uint256 bits, uint256 laneBits, bool isFlipped)
        private
        view
        returns (bytes32)
    {
        bytes memory points = vm.parseJsonBytes(_json, string.concat(blob, ".points"));
        return _hash(_shown(blob, isFlipped), points, weights, bits, laneBits);
    }

    function _shown(string memory blob, bool isFlipped) private view returns (Shown memory shown) {
        shown.isFlipped = isFlipped;
        (shown.first, shown.second) = (uint256(_word(blob, ".first")), uint256(_word(blob, ".second")));
        shown.negatedDelta = abi.decode(vm.parseJsonBytes(_json, string.concat(blob, ".negated_delta")), (G1));
    }

    function _hash(Shown memory shown, bytes memory points, uint256[] memory weights, uint256 bits, uint256 laneBits)
        private
        view
        returns (bytes32)
    {
        uint256 room = shown.isFlipped ? Decoys.FLIPPED_TERMS : Decoys.PLAIN_TERMS;
        bytes memory terms = new bytes((weights.length + room) * Bls12381.TERM_LENGTH);
        shown.weight = 0;
        for (uint256 i = 0; i < weights.length; ++i) {
            uint256 scalar = shown.isFlipped ? Bls12381.ORDER - weights[i] : weights[i];
            Bls12381.setTerm(terms, i, this.pointAt(points, i), scalar);
            shown.weight += weights[i];
        }
        shown.next = weights.length;
        Decoys.setTerms(terms, shown, bits, laneBits);
        return Kzg.versionedHash(Bls12381.compress(Bls12381.weightedSum(terms)));
    }

    /// @dev Takes points as calldata.
    function pointAt(bytes calldata points, uint256 index) external pure returns (G1 memory) {
        return Bls12381.pointAt(points, index);
    }

    function _uint(string memory key, string memory name) private view returns (uint256) {
        return vm.parseJsonUint(_json, string.concat(key, name));
    }

    function _word(string memory key, string memory name) private view returns (bytes32) {
        return vm.parseJsonBytes32(_json, string.concat(key, name));
    }

    function _item(string memory list, uint256 index) private pure returns (string memory) {
        return string.concat(list, "[", vm.toString(index), "]");
    }
}
