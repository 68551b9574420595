// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../../src/interfaces/IStaking.sol";
import {ITaskTypes} from "../../src/interfaces/ITaskTypes.sol";
import {Bits} from "../../src/libraries/Bits.sol";
import {Line, Lines} from "./Crypto.sol";
import {Fixture} from "./Fixture.sol";

/// @notice Hospitals with keys, which sign and send nothing.
abstract contract RelayFixture is Fixture {
    using Bits for uint256;

    function _key(uint256 i) internal pure returns (uint256) {
        return uint256(keccak256(abi.encode("hospital's key", i))) >> 1;
    }

    function _signer(uint256 i) internal pure returns (address) {
        return vm.addr(_key(i));
    }

    /// @dev A task of these hospitals alone, whose statistics round takes commitments.
    function _toRelaying(uint256 count, uint256 blobs) internal {
        ITaskTypes.TaskParams memory params = _params();
        params.maxHospitals = uint16(count);
        params.statisticsBlobs = uint16(blobs);
        _propose(params);
        _joinAggregator();
        for (uint256 i = 0; i < count; ++i) {
            address signer = _signer(i);
            if (staking.stakeOf(signer, IStaking.Role.Hospital).active == 0) _stake(signer, IStaking.Role.Hospital);
            _joinAs(signer, 100);
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            _joinVoter(i);
        }
    }

    function _signed(uint256 i) internal view returns (ITaskTypes.SignedUpdate memory) {
        return _signed(i, _lines(_round(), i));
    }

    function _signed(uint256 i, Line[] memory lines) internal view returns (ITaskTypes.SignedUpdate memory) {
        return _signed(i, _hashes(_round(), _signer(i), lines));
    }

    function _signed(uint256 i, bytes32[] memory hashes) internal view returns (ITaskTypes.SignedUpdate memory update) {
        update.hospital = _signer(i);
        update.cohort = _cohortOfSigner(i);
        update.pointHashes = hashes;
        update.base = Lines.BASE;
        _sign(i, update);
    }

    /// @dev In the current round.
    function _sign(uint256 i, ITaskTypes.SignedUpdate memory update) internal view {
        bytes32 digest = tasks.commitmentDigest(id, _round(), update.pointHashes, update.shareBundle, update.base);
        (update.r, update.vs) = _sign(_key(i), digest);
    }

    /// @dev 0 for one that joined no task.
    function _cohortOfSigner(uint256 i) internal view returns (uint256 cohort) {
        uint256 cohorts = _roundState().cohorts;
        while (cohort < cohorts && !tasks.cohortMembers(id, _round(), cohort).has(i)) ++cohort;
        if (cohort == cohorts) cohort = 0;
    }

    /// @dev EIP-2098.
    function _sign(uint256 key, bytes32 digest) internal pure returns (bytes32 r, bytes32 vs) {
        uint8 v;
        bytes32 s;
        (v, r, s) = vm.sign(key, digest);
        vs = bytes32(uint256(v - 27) << 255 | uint256(s));
    }

    function _batch(uint256 count) internal view returns (ITaskTypes.SignedUpdate[] memory updates) {
        updates = new ITaskTypes.SignedUpdate[](count);
        for (uint256 i = 0; i < count; ++i) {
            updates[i] = _signed(i);
        }
    }

    function _relay(ITaskTypes.SignedUpdate[] memory updates) internal {
        _relay(0, updates);
    }

    function _relay(uint256 round, ITaskTypes.SignedUpdate[] memory updates) internal {
        vm.prank(STRANGER);
        tasks.commitUpdates(id, round, updates);
    }
}
