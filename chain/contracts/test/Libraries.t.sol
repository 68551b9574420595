// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Bits} from "../src/libraries/Bits.sol";
import {Bls12381, G1} from "../src/libraries/Bls12381.sol";
import {Cohorts} from "../src/libraries/Cohorts.sol";
import {Kzg} from "../src/libraries/Kzg.sol";
import {Medians} from "../src/libraries/Medians.sol";
import {Payouts} from "../src/libraries/Payouts.sol";
import {TaskRules} from "../src/libraries/TaskRules.sol";
import {Tickets} from "../src/libraries/Tickets.sol";
import {Points} from "./utils/Crypto.sol";
import {Test} from "./utils/Vm.sol";

contract LibrariesTest is Test {
    using Bits for uint256;

    string private constant VECTORS = "../../tests/vectors/";

    function test_hashToG1_agreesWithRfc9380() public view {
        string memory json = vm.readFile(string.concat(VECTORS, "bls/hash_to_g1.json"));
        bytes memory domain = bytes(vm.parseJsonString(json, ".dst"));
        uint256 count;
        for (string memory key = _case(0); vm.keyExistsJson(json, key); key = _case(++count)) {
            bytes memory message = bytes(vm.parseJsonString(json, string.concat(key, ".message")));
            bytes memory x = vm.parseJsonBytes(json, string.concat(key, ".x"));
            bytes memory y = vm.parseJsonBytes(json, string.concat(key, ".y"));
            bytes memory expected = abi.encodePacked(bytes16(0), x, bytes16(0), y);
            vm.assertEq(abi.encode(Bls12381.hashToG1(message, domain)), expected);
        }
        vm.assertEq(count, 5);
    }

    function test_compress_agreesWithPyEcc() public view {
        string memory json = vm.readFile(string.concat(VECTORS, "protocol.json"));
        uint256 count;
        for (
            string memory key = ".compressions[0]";
            vm.keyExistsJson(json, key);
            key = string.concat(".compressions[", vm.toString(++count), "]")
        ) {
            G1 memory point = abi.decode(vm.parseJsonBytes(json, string.concat(key, ".point")), (G1));
            vm.assertEq(Bls12381.compress(point), vm.parseJsonBytes(json, string.concat(key, ".compressed")));
        }
        vm.assertEq(count, 6);
    }

    function test_weightedSum_agreesWithCKzg() public view {
        string memory json = vm.readFile(string.concat(VECTORS, "protocol.json"));
        uint256[3] memory weights = [uint256(1), 3, 250];
        bytes memory terms = new bytes(3 * Bls12381.TERM_LENGTH);
        for (uint256 i = 0; i < 3; ++i) {
            string memory key = string.concat(".committed[", vm.toString(i), "].points");
            Bls12381.setTerm(terms, i, abi.decode(vm.parseJsonBytes(json, key), (G1)), weights[i]);
        }
        bytes memory compressed = Bls12381.compress(Bls12381.weightedSum(terms));
        vm.assertEq(compressed, vm.parseJsonBytes(json, ".weighted_sum.commitment"));
        vm.assertEq(Kzg.versionedHash(compressed), vm.parseJsonBytes32(json, ".weighted_sum.versioned_hash"));
    }

    function test_weightedSum_refusesPointOutsideSubgroup() public {
        string memory json = vm.readFile(string.concat(VECTORS, "protocol.json"));
        G1 memory point = abi.decode(vm.parseJsonBytes(json, ".outside_g1.point"), (G1));
        vm.expectRevert(abi.encodeWithSelector(Bls12381.PrecompileFailed.selector, 0x0c));
        this.weightedSum(abi.encode(point, uint256(1)));
    }

    function test_verify_acceptsPyEccSignaturesAndNoOthers() public view {
        string memory json = vm.readFile(string.concat(VECTORS, "protocol.json"));
        bytes memory key = vm.parseJsonBytes(json, ".signatures.public_key");
        bytes memory message = vm.parseJsonBytes(json, ".signatures.ticket_message");
        bytes memory ticket = vm.parseJsonBytes(json, ".signatures.ticket");
        vm.assertTrue(this.verify(key, ticket, message, Tickets.TICKET_DOMAIN));
        vm.assertEq(this.draw(ticket), vm.parseJsonUint(json, ".signatures.draw"));

        vm.assertFalse(this.verify(key, ticket, message, Tickets.POSSESSION_DOMAIN));
        vm.assertFalse(this.verify(key, ticket, bytes.concat(message, "."), Tickets.TICKET_DOMAIN));
        bytes memory outside = vm.parseJsonBytes(json, ".outside_g1.point");
        vm.assertFalse(this.verify(key, outside, message, Tickets.TICKET_DOMAIN));
        bytes memory outsideKey = vm.parseJsonBytes(json, ".outside_g2");
        vm.assertFalse(this.verify(outsideKey, ticket, message, Tickets.TICKET_DOMAIN));
        vm.assertFalse(this.verify(key, bytes.concat(ticket, "."), message, Tickets.TICKET_DOMAIN));
        // The identity signs everything for the identity key, and neither counts.
        vm.assertFalse(this.verify(new bytes(256), new bytes(128), message, Tickets.TICKET_DOMAIN));
        vm.assertFalse(this.verify(new bytes(256), ticket, message, Tickets.TICKET_DOMAIN));
        vm.assertFalse(this.verify(key, new bytes(128), message, Tickets.TICKET_DOMAIN));
    }

    function test_threshold_isShareOfAllDraws(uint256 seats, uint256 bond, uint256 weight) public pure {
        seats = _bound(seats, 1, 256);
        bond = _bound(bond, 1, type(uint128).max);
        weight = _bound(weight, bond, 256 * bond);
        uint256 threshold = Tickets.threshold(seats, bond, weight);
        if (seats * bond >= weight) vm.assertEq(threshold, type(uint256).max);
        else vm.assertLe(threshold / (seats * bond), type(uint256).max / weight + 1);
        vm.assertLe(Tickets.threshold(seats, bond, weight + 1), threshold);
    }

    function test_deal_isAPartitionOfEvenSizes(uint256 members, bytes32 seed, uint256 count) public pure {
        vm.assume(members != 0);
        count = _bound(count, 1, members.count());
        uint256[] memory cohorts = Cohorts.assign(members, seed, count);
        uint256 seen;
        for (uint256 i = 0; i < count; ++i) {
            vm.assertEq(seen & cohorts[i], 0);
            seen |= cohorts[i];
            uint256 size = cohorts[i].count();
            vm.assertTrue(size == members.count() / count || size == members.count() / count + 1);
        }
        vm.assertEq(seen, members);
    }

    function test_deal_dependsOnSeed() public pure {
        uint256[] memory one = Cohorts.assign(type(uint256).max, keccak256("one"), 4);
        uint256[] memory two = Cohorts.assign(type(uint256).max, keccak256("two"), 4);
        vm.assertTrue(one[0] != two[0]);
    }

    function test_count_countsBits(uint256 map) public pure {
        uint256 expected;
        for (uint256 i = 0; i < 256; ++i) {
            if (map.has(i)) ++expected;
        }
        vm.assertEq(map.count(), expected);
        vm.assertEq(type(uint256).max.count(), 256);
    }

    function test_lower_hasAsManyBelowAsAbove(int64[] memory values) public pure {
        vm.assume(values.length > 0 && values.length <= 256);
        int64[] memory given = new int64[](values.length);
        for (uint256 i = 0; i < values.length; ++i) {
            given[i] = values[i];
        }
        int64 median = Medians.lower(values);
        uint256 below;
        uint256 equal;
        for (uint256 i = 0; i < given.length; ++i) {
            if (given[i] < median) ++below;
            if (given[i] == median) ++equal;
        }
        uint256 position = (given.length - 1) / 2;
        vm.assertTrue(below <= position && position < below + equal);
    }

    function test_lower_isLowerOfTwo() public pure {
        int64[] memory values = new int64[](2);
        (values[0], values[1]) = (7, type(int64).min);
        vm.assertEq(Medians.lower(values), type(int64).min);
    }

    function test_share_neverExceedsWhole(uint128 amount, uint96[8] memory parts) public pure {
        uint256 whole;
        for (uint256 i = 0; i < 8; ++i) {
            whole += parts[i];
        }
        uint256 paid;
        for (uint256 i = 0; i < 8; ++i) {
            paid += Payouts.share(amount, parts[i], whole);
        }
        vm.assertLe(paid, amount);
    }

    function test_penalty_staysWithinWhatIsLeft(uint128 bond, uint16 basisPoints, uint128 left) public pure {
        basisPoints = uint16(_bound(basisPoints, 0, 10_000));
        uint256 penalty = Payouts.penalty(bond, basisPoints, left);
        vm.assertLe(penalty, left);
        vm.assertLe(penalty, bond);
    }

    function test_isNear_takesTheExtremes(int64 score, int64 median) public pure {
        vm.assertTrue(Payouts.isNear(median, median, 0, 0));
        vm.assertTrue(Payouts.isNear(score, median, type(uint64).max, 0));
        vm.assertFalse(Payouts.isNear(type(int64).min, type(int64).max, type(uint64).max - 1, 0));
        vm.assertTrue(Payouts.isNear(-110, -100, 0, 1_000));
        vm.assertFalse(Payouts.isNear(-111, -100, 0, 1_000));
    }

    function test_gain_isNothingWithoutImprovement(uint32 weight, int64 median) public pure {
        uint256 gain = Payouts.gain(weight, median);
        vm.assertTrue(median > 0 ? gain == uint256(weight) * uint64(median) : gain == 0);
    }

    function test_weight_isClampedCeiling(uint256 rows, uint32 rowsPerWeight, uint32 maxWeight) public pure {
        rows = _bound(rows, 1, type(uint128).max);
        vm.assume(rowsPerWeight > 0 && maxWeight > 0);
        uint256 weight = TaskRules.weight(rows, rowsPerWeight, maxWeight);
        uint256 ceiling = (rows + rowsPerWeight - 1) / rowsPerWeight;
        vm.assertEq(weight, ceiling < maxWeight ? ceiling : maxWeight);
        vm.assertGt(weight, 0);
    }

    function test_largestCohort_isTheLargestThatForms(uint256 hospitals, uint256 cohorts, uint256 size) public pure {
        hospitals = _bound(hospitals, 1, TaskRules.MAX_NODES);
        size = _bound(size, 1, hospitals);
        cohorts = _bound(cohorts, 1, hospitals / size);
        uint256 largest;
        for (uint256 joined = size; joined <= hospitals; ++joined) {
            uint256 count = joined / size < cohorts ? joined / size : cohorts;
            uint256 most = (joined + count - 1) / count;
            if (most > largest) largest = most;
        }
        vm.assertEq(TaskRules.largestCohort(hospitals, cohorts, size), largest);
    }

    // Calls that give memory as calldata, or that may revert.

    function verify(bytes calldata key, bytes calldata signature, bytes memory message, bytes memory domain)
        external
        view
        returns (bool)
    {
        return Tickets.verify(key, signature, message, domain);
    }

    function draw(bytes calldata ticket) external pure returns (uint256) {
        return Tickets.draw(ticket);
    }

    function weightedSum(bytes memory terms) external view returns (G1 memory) {
        return Bls12381.weightedSum(terms);
    }

    function _case(uint256 index) private pure returns (string memory) {
        return string.concat(".cases[", vm.toString(index), "]");
    }
}
