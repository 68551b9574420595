// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../src/interfaces/IStaking.sol";
import {ITaskSettlement} from "../src/interfaces/ITaskSettlement.sol";
import {ITaskRounds} from "../src/interfaces/ITaskRounds.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {Signer} from "./utils/Crypto.sol";
import {Fixture} from "./utils/Fixture.sol";
import {GasMeter} from "./utils/GasMeter.sol";

abstract contract GasFixture is Fixture, GasMeter {
    function _measure(string memory name, address sender, bytes memory data) internal returns (uint256) {
        return _measure("gas", name, sender, address(tasks), data);
    }
}

contract CommitGasTest is GasFixture {
    bytes private _first;
    bytes private _second;

    function setUp() public override {
        super.setUp();
        _toCommitting();
        _first = abi.encodeCall(ITaskRounds.commitUpdate, (id, 1, _cohortOf(1, _hospital(0)), _update(1, 0)));
        _second = abi.encodeCall(ITaskRounds.commitUpdate, (id, 1, _cohortOf(1, _hospital(1)), _update(1, 1)));
    }

    function test_commitUpdate_costsLessThan75k() public {
        bytes memory data = _first;
        vm.assertLe(_measure("commitUpdate, first of a round, one blob", _hospital(0), data), 75_000);
    }

    function test_code_fitsAChain() public view {
        vm.assertLe(address(tasks).code.length, 24_576);
    }
}

contract CommitNextGasTest is GasFixture {
    bytes private _data;
    uint256 private _next;

    function setUp() public override {
        super.setUp();
        _toCommitting();
        _commit(0);
        uint256 cohort = _cohortOf(1, _hospital(0));
        _next = 1;
        while (_cohortOf(1, _hospital(_next)) != cohort) ++_next;
        _data = abi.encodeCall(ITaskRounds.commitUpdate, (id, 1, cohort, _update(1, _next)));
    }

    /// @dev The cohort's running hash is not zero any more.
    function test_commitUpdate_costsLessThan55kAfterTheFirstOfItsCohort() public {
        bytes memory data = _data;
        vm.assertLe(_measure("commitUpdate, one blob", _hospital(_next), data), 55_000);
    }
}

contract CommitManyGasTest is GasFixture {
    bytes private _data;

    function setUp() public override {
        super.setUp();
        ITaskTypes.TaskParams memory params = _params();
        params.statisticsBlobs = 16;
        _propose(params);
        _joinAll();
        _data = abi.encodeCall(ITaskRounds.commitUpdate, (id, 0, 0, _update(0, 0)));
    }

    function test_commitUpdate_costsLessThan30kABlobForSixteen() public {
        bytes memory data = _data;
        vm.assertLe(_measure("commitUpdate, sixteen blobs", _hospital(0), data), 16 * 30_000);
    }
}

contract PublishGasTest is GasFixture {
    bytes private _sumData;
    bytes private _publishData;
    bytes32 private _hash;

    function setUp() public override {
        super.setUp();
        _toPublishing();
        _publish(0, 0, _sumCohort(0, 0));
        _hash = _sumCohort(1, 0);
        _publishData = abi.encodeCall(ITaskRounds.publish, (id, 1, 1, 0, 0, 1));
    }

    function test_publish_costsLessThan60kWithTheNextPhase() public {
        bytes memory data = _publishData;
        _setBlob(_hash);
        vm.assertLe(_measure("publish, last cohort, one blob", AGGREGATOR, data), 60_000);
    }
}

contract SumGasTest is GasFixture {
    bytes private _data;

    function setUp() public override {
        super.setUp();
        _toStatistics();
        _commitAll();
        _fix(15);
        (ITaskTypes.Commitments memory points,) = _sum(0, 0, 15, 0);
        _data = abi.encodeCall(ITaskRounds.sumCommitments, (id, 0, 0, 0, points));
    }

    function test_sumCommitments_costsLessThan200kForFour() public {
        bytes memory data = _data;
        vm.assertLe(_measure("sumCommitments, four hospitals", STRANGER, data), 200_000);
    }
}

contract ScoreGasTest is GasFixture {
    bytes private _data;
    bytes private _key;
    bytes private _ticketOf;
    bytes private _message;

    function setUp() public override {
        super.setUp();
        _toScoring();
        (_key, _ticketOf, _message) = (Signer.publicKey(_secret(0)), _ticket(0), tasks.ticketMessage(id, 1, _voter(0)));
        _data = abi.encodeCall(ITaskRounds.commitScores, (id, 1, _key, _ticketOf, bytes32(uint256(1))));
    }

    function test_commitScores_costsLessThan235k() public {
        bytes memory data = _data;
        vm.assertLe(_measure("commitScores, first of a round", _voter(0), data), 235_000);
    }

    function test_verifyTicket_costsLessThan130k() public {
        bytes memory data = abi.encodeCall(IStaking.verifyTicket, (_key, _ticketOf, _message));
        vm.assertGt(address(staking).code.length, 0); // warm: what is measured is the verification
        uint256 before = gasleft();
        (, bytes memory verified) = address(staking).staticcall(data);
        uint256 used = before - gasleft();
        vm.assertTrue(abi.decode(verified, (bool)));
        vm.snapshotValue("gas", "verifyTicket, call alone", used);
        vm.assertLe(used, 130_000);
    }
}

contract SettleGasTest is GasFixture {
    bytes private _data;

    function setUp() public override {
        super.setUp();
        _toScoring();
        _scoreAll(1_000);
        _data = abi.encodeCall(ITaskSettlement.settle, (id, 1));
    }

    function test_settle_costsLessThan460kForFourHospitalsAndThreeVoters() public {
        bytes memory data = _data;
        vm.assertLe(_measure("settle, four hospitals, three voters", STRANGER, data), 460_000);
    }
}
