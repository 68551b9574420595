// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Fixture} from "./utils/Fixture.sol";

/// @notice Bad transport keys: nobody joins with an invalid key, or with another's.
contract TransportKeysTest is Fixture {
    bytes32 private constant SEALING = keccak256("encryption key");

    function setUp() public override {
        super.setUp();
        _propose(_params());
    }

    function _refused(bytes4 why, address hospital, bytes memory key, bytes memory proof) private {
        vm.expectRevert(abi.encodeWithSelector(why, hospital));
        vm.prank(hospital);
        tasks.joinAsHospital(id, 1, key, proof, SEALING);
    }

    function test_joinAsHospital_refusesWhatIsNoKey() public {
        address hospital = _hospital(0);
        bytes memory key = _transportKey(hospital);
        bytes memory proof = _transportProof(hospital, hospital);
        bytes4 invalid = ITaskTypes.TransportKeyInvalid.selector;
        _refused(invalid, hospital, "", "");
        _refused(invalid, hospital, "", proof);
        _refused(invalid, hospital, "transport key", proof);
        _refused(invalid, hospital, new bytes(64), proof);
        _refused(invalid, hospital, new bytes(1 << 15), proof);
        _refused(invalid, hospital, bytes.concat(key, hex"00"), proof);
        _refused(invalid, hospital, bytes.concat(hex"04", key), proof);
        _refused(invalid, hospital, abi.encode(uint256(1), uint256(1)), proof); // off the curve
        _refused(invalid, hospital, abi.encode(type(uint256).max, type(uint256).max), proof);
        _refused(invalid, hospital, key, "");
        _refused(invalid, hospital, key, new bytes(64));
        _refused(invalid, hospital, key, bytes.concat(proof, hex"00"));
    }

    /// @dev A copied join from the pool of transactions is refused, even if it comes first.
    function test_joinAsHospital_refusesAnothersKey() public {
        bytes memory key = _transportKey(_hospital(0));
        bytes memory proof = _transportProof(_hospital(0), _hospital(0));
        _refused(ITaskTypes.TransportKeyInvalid.selector, _hospital(1), key, proof);
        _joinHospital(0);
        _refused(ITaskTypes.TransportKeyInvalid.selector, _hospital(1), key, proof);
    }

    function test_joinAsHospital_refusesAKeyTwice() public {
        _joinHospital(0);
        bytes memory proof = _transportProof(_hospital(0), _hospital(1)); // both of one owner
        _refused(ITaskTypes.TransportKeyTaken.selector, _hospital(1), _transportKey(_hospital(0)), proof);
        _joinHospital(1);
    }

    function test_joinAsHospital_refusesAProofOfAnotherTask() public {
        bytes memory proof = _transportProof(_hospital(0), _hospital(0));
        _propose(_params());
        _refused(ITaskTypes.TransportKeyInvalid.selector, _hospital(0), _transportKey(_hospital(0)), proof);
        _joinHospital(0);
    }

    function test_joinAsHospital_refusesNoEncryptionKeyInAMaskedTask() public {
        ITaskTypes.TaskParams memory params = _params();
        (params.masked, params.cohorts, params.minCohortSize, params.minHospitals) = (true, 1, 3, 3);
        _propose(params);
        bytes memory key = _transportKey(_hospital(0));
        bytes memory proof = _transportProof(_hospital(0), _hospital(0));
        vm.expectRevert(abi.encodeWithSelector(ITaskTypes.EncryptionKeyMissing.selector, _hospital(0)));
        vm.prank(_hospital(0));
        tasks.joinAsHospital(id, 1, key, proof, 0);
    }

    function test_joinAsHospital_takesAnyKeyThatItsAccountHolds(uint256 secret, uint256 rows) public {
        secret = _bound(secret, 1, type(uint128).max);
        rows = _bound(rows, 1, type(uint256).max);
        (uint256 x, uint256 y) = vm.publicKeyP256(secret);
        bytes memory key = abi.encode(x, y);
        (bytes32 r, bytes32 s) = vm.signP256(secret, sha256(tasks.transportMessage(id, _hospital(0), key)));
        vm.prank(_hospital(0));
        tasks.joinAsHospital(id, rows, key, abi.encode(r, s), SEALING);
        uint256 weight = rows > 800 ? 8 : (rows - 1) / 100 + 1;
        vm.assertEq(tasks.hospitals(id)[0].weight, weight);
    }
}
