// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IBeacon} from "../src/interfaces/IBeacon.sol";
import {Bls12381, G1} from "../src/libraries/Bls12381.sol";
import {Kzg} from "../src/libraries/Kzg.sol";
import {Signer} from "./utils/Crypto.sol";
import {GasFixture} from "./Gas.t.sol";
import {IDeployedDrandBeacon} from "./utils/Deployed.sol";
import {Test} from "./utils/Vm.sol";

/// @notice A beacon of quicknet, and the vectors: rounds as the League of Entropy published them.
abstract contract QuicknetFixture is Test {
    uint256 internal constant AHEAD = 30;

    IDeployedDrandBeacon internal drand;
    string internal vectors;
    uint256 internal genesis;
    uint256 internal period;

    function _setUpQuicknet() internal {
        vectors = vm.readFile("../../tests/vectors/drand_quicknet.json");
        genesis = vm.parseJsonUint(vectors, ".genesis");
        period = vm.parseJsonUint(vectors, ".period");
        drand = _deployDrand(genesis, period, vm.parseJsonBytes(vectors, ".public_key_point"), AHEAD);
    }

    function _deployDrand(uint256 genesis_, uint256 period_, bytes memory key, uint256 ahead)
        internal
        returns (IDeployedDrandBeacon deployed)
    {
        bytes memory code = vm.getCode(_artifact("DrandBeacon"));
        code = bytes.concat(code, abi.encode(genesis_, period_, key, ahead));
        assembly ("memory-safe") {
            deployed := create(0, add(code, 32), mload(code))
            if iszero(deployed) {
                returndatacopy(0, 0, returndatasize())
                revert(0, returndatasize())
            }
        }
    }

    function _start(uint256 round) internal view returns (uint256) {
        return genesis + (round - 1) * period;
    }

    function _round(uint256 index) internal pure returns (string memory) {
        return string.concat(".rounds[", vm.toString(index), "]");
    }
}

contract DrandBeaconTest is QuicknetFixture {
    function setUp() public {
        _setUpQuicknet();
        vm.warp(genesis + 1_000_000_000);
    }

    function test_seed_isThatOfPublishedRounds() public {
        uint256 count;
        for (string memory key = _round(0); vm.keyExistsJson(vectors, key); key = _round(++count)) {
            uint256 round = vm.parseJsonUint(vectors, string.concat(key, ".round"));
            bytes memory point = vm.parseJsonBytes(vectors, string.concat(key, ".point"));
            bytes32 randomness = vm.parseJsonBytes32(vectors, string.concat(key, ".randomness"));
            vm.assertEq(_start(round), vm.parseJsonUint(vectors, string.concat(key, ".time")));
            vm.warp(_start(round));
            bytes32 seed = drand.seed(round, point);
            vm.assertEq(seed, vm.parseJsonBytes32(vectors, string.concat(key, ".seed")));
            vm.assertEq(seed, keccak256(abi.encode(randomness, round)));
            vm.warp(_start(round) + 365 days); // and forever
            vm.assertEq(drand.seed(round, point), seed);
            vm.assertFalse(drand.expired(round));
        }
        vm.assertEq(count, 9);
    }

    function test_seed_refusesEveryInvalidProof() public {
        uint256 round = vm.parseJsonUint(vectors, ".invalid_round");
        uint256 count;
        for (string memory key = _invalid(0); vm.keyExistsJson(vectors, key); key = _invalid(++count)) {
            bytes memory proof = vm.parseJsonBytes(vectors, string.concat(key, ".proof"));
            vm.expectRevert(abi.encodeWithSelector(IBeacon.SeedProofInvalid.selector, round));
            drand.seed(round, proof);
        }
        vm.assertEq(count, 20);
    }

    function test_seed_refusesSignatureForAnyOtherRound(uint256 other) public {
        uint256 round = vm.parseJsonUint(vectors, ".rounds[2].round");
        bytes memory point = vm.parseJsonBytes(vectors, ".rounds[2].point");
        // Round 0 is never signed; every number up to the last that has started is a round.
        other = _bound(other, 0, 300_000_000);
        vm.assume(other != round);
        vm.expectRevert(abi.encodeWithSelector(IBeacon.SeedProofInvalid.selector, other));
        drand.seed(other, point);
    }

    function test_seed_refusesEveryFlippedBit(uint256 bit) public {
        uint256 round = vm.parseJsonUint(vectors, ".rounds[2].round");
        bytes memory point = vm.parseJsonBytes(vectors, ".rounds[2].point");
        bit = _bound(bit, 0, 8 * point.length - 1);
        point[bit / 8] ^= bytes1(uint8(1 << (bit % 8)));
        vm.expectRevert(abi.encodeWithSelector(IBeacon.SeedProofInvalid.selector, round));
        drand.seed(round, point);
    }

    function test_seed_refusedBeforeTheRoundStarts() public {
        uint256 round = vm.parseJsonUint(vectors, ".rounds[2].round");
        bytes memory point = vm.parseJsonBytes(vectors, ".rounds[2].point");
        vm.warp(_start(round) - 1);
        vm.expectRevert(abi.encodeWithSelector(IBeacon.SeedNotReady.selector, round));
        drand.seed(round, point);
    }

    function test_seed_refusedBeforeGenesis() public {
        vm.warp(genesis - 1);
        vm.expectRevert(abi.encodeWithSelector(IBeacon.SeedNotReady.selector, 1));
        drand.seed(1, vm.parseJsonBytes(vectors, ".rounds[2].point"));
    }

    function test_seed_refusesNumbersThatAreNoRounds(uint256 request) public {
        request = _bound(request, type(uint64).max, type(uint256).max - 1) + 1;
        vm.expectRevert(abi.encodeWithSelector(IBeacon.SeedNotReady.selector, request));
        drand.seed(request, vm.parseJsonBytes(vectors, ".rounds[2].point"));
    }

    function test_seed_refusesAnotherChainsRounds() public {
        uint256 round = vm.parseJsonUint(vectors, ".rounds[2].round");
        IDeployedDrandBeacon other = _deployDrand(genesis, period, Signer.publicKey(1), AHEAD);
        vm.expectRevert(abi.encodeWithSelector(IBeacon.SeedProofInvalid.selector, round));
        other.seed(round, vm.parseJsonBytes(vectors, ".rounds[2].point"));
    }

    function test_seed_takesRoundsOfAnyChainOfTheScheme(uint256 secret, uint256 round) public {
        secret = _bound(secret, 1, Bls12381.ORDER - 1);
        round = _bound(round, 1, 100_000_000);
        IDeployedDrandBeacon other = _deployDrand(genesis, 10, Signer.publicKey(secret), AHEAD);
        bytes memory message = bytes.concat(sha256(abi.encodePacked(uint64(round))));
        bytes memory point = Signer.sign(secret, message, "BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_");
        bytes32 randomness = sha256(Bls12381.compress(abi.decode(point, (G1))));
        vm.assertEq(other.seed(round, point), keccak256(abi.encode(randomness, round)));
    }

    function test_request_isFirstRoundThatStartsLookaheadAfterNow(uint256 moment, uint256 every, uint256 ahead) public {
        every = _bound(every, 1, 1 days);
        ahead = _bound(ahead, 1, 1 days);
        moment = _bound(moment, genesis - 2 days, genesis + 100 * 365 days);
        IDeployedDrandBeacon beacon =
            _deployDrand(genesis, every, vm.parseJsonBytes(vectors, ".public_key_point"), ahead);
        vm.warp(moment);
        uint256 round = beacon.request();
        uint256 start = genesis + (round - 1) * every;
        vm.assertGt(round, 0);
        vm.assertLe(moment + ahead, start);
        if (round > 1) vm.assertGt(moment + ahead, start - every);
        // The requested round has not started, so it cannot be proven yet.
        vm.expectRevert(abi.encodeWithSelector(IBeacon.SeedNotReady.selector, round));
        beacon.seed(round, new bytes(128));
    }

    function test_constructor_keepsWhatItWasGiven() public view {
        vm.assertEq(drand.genesis(), genesis);
        vm.assertEq(drand.period(), period);
        vm.assertEq(drand.lookahead(), AHEAD);
        vm.assertEq(drand.publicKey(), vm.parseJsonBytes(vectors, ".public_key_point"));
    }

    function test_constructor_refusesWhatIsNoSchedule() public {
        bytes memory key = vm.parseJsonBytes(vectors, ".public_key_point");
        vm.expectRevert(abi.encodeWithSelector(IDeployedDrandBeacon.ScheduleInvalid.selector, 0, AHEAD));
        this.deploy(0, key, AHEAD);
        vm.expectRevert(abi.encodeWithSelector(IDeployedDrandBeacon.ScheduleInvalid.selector, period, 0));
        this.deploy(period, key, 0);
    }

    function test_constructor_refusesWhatIsNoKey() public {
        bytes memory key = vm.parseJsonBytes(vectors, ".public_key_point");
        _refuseKey(new bytes(256));
        _refuseKey(bytes.concat(key, hex"00"));
        _refuseKey(vm.parseJsonBytes(vectors, ".public_key"));
        _refuseKey(vm.parseJsonBytes(vm.readFile("../../tests/vectors/protocol.json"), ".outside_g2"));
        key[255] ^= 0x01;
        _refuseKey(key);
    }

    function deploy(uint256 period_, bytes memory key, uint256 ahead) external {
        _deployDrand(genesis, period_, key, ahead);
    }

    function _refuseKey(bytes memory key) private {
        vm.expectRevert(IDeployedDrandBeacon.KeyInvalid.selector);
        this.deploy(period, key, AHEAD);
    }

    function _invalid(uint256 index) private pure returns (string memory) {
        return string.concat(".invalid[", vm.toString(index), "]");
    }
}

/// @dev The cost of a proof alone. In a task, drawing seats and forming cohorts cost more on top.
contract DrandGasTest is GasFixture, QuicknetFixture {
    bytes private _data;

    function setUp() public override {
        super.setUp();
        _setUpQuicknet();
        uint256 round = vm.parseJsonUint(vectors, ".rounds[2].round");
        vm.warp(_start(round));
        _data = abi.encodeCall(IBeacon.seed, (round, vm.parseJsonBytes(vectors, ".rounds[2].point")));
    }

    function test_seed_costsLessThan160k() public {
        bytes memory data = _data;
        vm.assertLe(_measure("gas", "drand seed, call alone", STRANGER, address(drand), data), 160_000);
    }
}

contract PrevrandaoGasTest is GasFixture {
    bytes private _data;

    function setUp() public override {
        super.setUp();
        uint256 number = 1_002;
        vm.roll(number + 1);
        vm.setBlockhash(number, keccak256(_header(number)));
        _data = abi.encodeCall(IBeacon.seed, (number, _header(number)));
    }

    function test_seed_costsLessThan60k() public {
        bytes memory data = _data;
        vm.assertLe(_measure("gas", "prevrandao seed, call alone", STRANGER, address(beacon), data), 60_000);
    }
}
