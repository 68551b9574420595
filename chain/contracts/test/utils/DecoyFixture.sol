// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskTypes} from "../../src/interfaces/ITaskTypes.sol";
import {Bits} from "../../src/libraries/Bits.sol";
import {Bls12381, G1} from "../../src/libraries/Bls12381.sol";
import {Kzg} from "../../src/libraries/Kzg.sol";
import {Scores} from "../../src/libraries/Scores.sol";
import {Line, Lines, Points} from "./Crypto.sol";
import {Fixture} from "./Fixture.sol";

/// @notice Rounds with decoys: what an honest aggregator publishes and discloses, from the definitions rather than by
///         the contract's own library.
abstract contract DecoyFixture is Fixture {
    using Bits for uint256;

    bytes32 internal constant TAG = keccak256("CONSILIUM-V1-CANARY");
    uint256 internal constant BITS = 16;
    uint256 internal constant LANE_BITS = 24;
    uint64 internal constant MARGIN = 1_000;
    /// @dev A ballot of these passes every test: the published blob is the sum in cohorts that are not sign-flipped.
    int64 internal constant GOOD = 3_000;
    int64 internal constant BAD = -3_000;

    bytes32 internal _seed = keccak256("seed");

    function _decoyParams() internal pure returns (ITaskTypes.TaskParams memory params) {
        params = _params();
        params.decoys = true;
        params.updateBits = uint8(BITS);
        params.laneBits = uint8(LANE_BITS);
        params.decoyMargin = MARGIN;
        params.failedDecoySlashBps = 5_000;
    }

    // Published blobs.

    function _negatedDelta(uint256 blobs) internal view returns (bytes memory points) {
        for (uint256 blob = 0; blob < blobs; ++blob) {
            points = bytes.concat(points, abi.encode(Lines.point(_negatedDeltaOf(blob))));
        }
    }

    function _negatedDeltaOf(uint256 blob) internal pure returns (Line memory) {
        return Lines.from(abi.encode("retreat", blob));
    }

    function _blinder(uint256 cohort, uint256 blob, uint256 which) internal pure returns (uint256) {
        return uint256(keccak256(abi.encode("blinder", cohort, blob, which))) % Bls12381.ORDER;
    }

    function _isFlipped(uint256 cohort) internal view returns (bool) {
        return uint256(keccak256(abi.encode(TAG, _seed, id, _round(), cohort))) & 1 == 1;
    }

    function _flipped() internal view returns (uint256 cohorts) {
        for (uint256 cohort = 0; cohort < _roundState().cohorts; ++cohort) {
            if (_isFlipped(cohort)) cohorts = cohorts.with(cohort);
        }
    }

    /// @dev Tries seeds until exactly these of the round's cohorts are sign-flipped.
    function _flip(uint256 cohorts) internal {
        uint256 all = Bits.below(_roundState().cohorts);
        while (_flipped() & all != cohorts) {
            _seed = keccak256(abi.encode(_seed));
        }
    }

    function _disclosed(uint256 cohort, uint256 blob) internal view returns (ITaskTypes.Disclosed memory disclosed) {
        (disclosed.commitments,) = _sum(_round(), cohort, _survivors(_round(), cohort), blob);
        (disclosed.first, disclosed.second) = (_blinder(cohort, blob, 0), _blinder(cohort, blob, 1));
    }

    function _publishedHash(uint256 cohort, uint256 blob, bool isFlipped) internal view returns (bytes32) {
        return Kzg.versionedHash(Bls12381.compress(_publishedPoint(cohort, blob, isFlipped)));
    }

    /// @dev The sum without blinders plus w·h in all lanes; or 4w·h in all lanes less w times the negated delta and the
    ///      sum.
    function _publishedPoint(uint256 cohort, uint256 blob, bool isFlipped) internal view returns (G1 memory) {
        uint256 survivors = _survivors(_round(), cohort);
        Line memory sum;
        uint256 weight;
        for (uint256 i = 0; survivors >> i != 0; ++i) {
            if (!survivors.has(i)) continue;
            Lines.addWeighted(sum, _line(_round(), i, blob), i + 1);
            weight += i + 1;
        }
        G1 memory blinders = Points.plus(
            Points.times(_lagrange4094(), _blinder(cohort, blob, 0)),
            Points.times(_lagrange4095(), _blinder(cohort, blob, 1))
        );
        G1 memory plain = Points.plus(Lines.point(sum), Points.negated(blinders));
        uint256 level = weight * (2 ** (BITS - 1) - 1);
        if (!isFlipped) return Points.plus(plain, Points.times(_ones(), level));
        G1 memory taken = Points.plus(plain, Points.times(Lines.point(_negatedDeltaOf(blob)), weight));
        return Points.plus(Points.times(_ones(), 4 * level), Points.negated(taken));
    }

    /// @dev The commitment to ones in all lanes of all scalars but the blinders'.
    function _ones() private view returns (G1 memory) {
        uint256 scalar;
        for (uint256 lane = 0; lane < 252 / LANE_BITS; ++lane) {
            scalar += 2 ** (LANE_BITS * lane);
        }
        G1 memory blinders = Points.plus(_lagrange4094(), _lagrange4095());
        return Points.times(Points.plus(Points.generator(), Points.negated(blinders)), scalar);
    }

    // One step per phase.

    function _setDecoys() internal {
        (uint256 round, bytes32 commitment) = (_round(), keccak256(abi.encode(TAG, _seed)));
        bytes32 negatedDelta = keccak256(_negatedDelta(tasks.params(id).updateBlobs));
        vm.prank(AGGREGATOR);
        tasks.setDecoys(id, round, commitment, negatedDelta);
    }

    function _publishCohorts() internal {
        ITaskTypes.RoundState memory round = _roundState();
        for (uint256 cohort = 0; cohort < round.cohorts; ++cohort) {
            if (round.viableCohorts.has(cohort)) _publish(cohort, 0, _publishedHash(cohort, 0, _isFlipped(cohort)));
        }
    }

    function _discloseCohort(uint256 cohort) internal {
        tasks.discloseDecoys(id, _round(), cohort, 0, _seed, _negatedDelta(1), _one(_disclosed(cohort, 0)));
    }

    function _openAll() internal {
        ITaskTypes.RoundState memory round = _roundState();
        for (uint256 cohort = 0; cohort < round.cohorts; ++cohort) {
            if (round.viableCohorts.has(cohort)) _discloseCohort(cohort);
        }
    }

    function _one(ITaskTypes.Disclosed memory disclosed) internal pure returns (ITaskTypes.Disclosed[] memory list) {
        list = new ITaskTypes.Disclosed[](1);
        list[0] = disclosed;
    }

    /// @dev A ballot with `good` for sums and `bad` for decoys.
    function _ballot(int64 good, int64 bad) internal view returns (int64[] memory scores) {
        uint256 cohorts = _roundState().cohorts;
        scores = new int64[](2 * cohorts);
        for (uint256 cohort = 0; cohort < cohorts; ++cohort) {
            bool isFlipped = _isFlipped(cohort);
            scores[cohort] = isFlipped ? bad : good;
            scores[cohorts + cohort] = isFlipped ? good : bad;
        }
    }

    function _constant(int64 each) internal view returns (int64[] memory scores) {
        scores = new int64[](2 * _roundState().cohorts);
        for (uint256 i = 0; i < scores.length; ++i) {
            scores[i] = each;
        }
    }

    function _mismatch() internal view returns (int64[] memory) {
        return _constant(Scores.DOES_NOT_MATCH);
    }

    /// @dev Seals and reveals everybody's ballot.
    function _judge(int64[][] memory ballots) internal {
        for (uint256 i = 0; i < VOTERS; ++i) {
            _score(i, ballots[i]);
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            _reveal(i, ballots[i]);
        }
    }

    function _honest() internal view returns (int64[][] memory ballots) {
        ballots = new int64[][](VOTERS);
        for (uint256 i = 0; i < VOTERS; ++i) {
            ballots[i] = _ballot(GOOD, BAD);
        }
    }

    // From start to a phase of round 1.

    function _toDecoyPublishing(ITaskTypes.TaskParams memory params) internal {
        _propose(params);
        _joinAll();
        _runTraining();
        _form();
        _commitAll();
        _fix(_roundState().members);
    }

    function _toDecoyScoring(uint256 flipped) internal {
        _toDecoyPublishing(_decoyParams());
        _flip(flipped);
        _setDecoys();
        _publishCohorts();
        _draw();
    }

    /// @dev From Ethereum's ceremony, as the vectors of `tests/vectors/decoys.json` have them.
    function _lagrange4094() internal pure returns (G1 memory) {
        return G1({
            xHigh: 0x16ee0b91313c68bac4aa9e065ce9e1d7,
            xLow: 0x7e51ca4cff31d6a438718c58264dee87674bd97fc5c6b8008be709521e4fd008,
            yHigh: 0x02a805de9525ba50d230253371322b7d,
            yLow: 0x4c0ca05e27732d1783515f3f809c13b5f924405655074cf2c86eb151d262cf39
        });
    }

    function _lagrange4095() internal pure returns (G1 memory) {
        return G1({
            xHigh: 0x025a6f586726c68d45f00ad0f5a44365,
            xLow: 0x23317939a47713f78fd4fe81cd74236fdac1b04ecd97c2d0267d6f4981d7beb1,
            yHigh: 0x09a1275f9efcc1e3166cdea9eff740ac,
            yLow: 0x675d8ec22fc07467f17c933e66ef3502e44dc20dcefd2f29621de1b9f64400f9
        });
    }
}
