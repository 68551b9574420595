// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IBeacon} from "../src/interfaces/IBeacon.sol";
import {IStaking} from "../src/interfaces/IStaking.sol";
import {ITasks} from "../src/interfaces/ITasks.sol";
import {ITaskTypes} from "../src/interfaces/ITaskTypes.sol";
import {TaskRegistry} from "../src/TaskRegistry.sol";
import {TaskSettlement} from "../src/TaskSettlement.sol";
import {Tasks} from "../src/Tasks.sol";
import {Bits} from "../src/libraries/Bits.sol";
import {Medians} from "../src/libraries/Medians.sol";
import {Payouts} from "../src/libraries/Payouts.sol";
import {Ranks} from "../src/libraries/Ranks.sol";
import {Scores} from "../src/libraries/Scores.sol";
import {Bond, HospitalEntry, Keys, Membership, Round, Task, VoterEntry} from "../src/types/Task.sol";
import {Test} from "./utils/Vm.sol";

/// @dev A round before it is settled: `RoundRecord` of the Python reference, with bonds as they were before it took
///      anything. A voter that did not reveal has no scores.
struct Record {
    uint128 poolLeft;
    uint96 forfeited;
    bool late;
    uint256[] weights;
    uint256[] hospitalBonds;
    uint256[] voterBonds;
    uint128 aggregatorBond;
    uint256[] cohorts;
    uint64 viable;
    uint256 committed;
    uint256 survivors;
    uint64 flipped;
    bool disclosed;
    uint256 seated;
    int64[][] scores;
    uint64 dropped;
    uint256 named;
}

/// @dev Stand-ins for settling: slashes burn the full amount, beacon values can be requested, and
///      rewards are recorded.
contract Neighbours {
    mapping(address node => uint256) public paid;
    uint256 public burnt;

    function burn(uint256 amount) external {
        burnt += amount;
    }

    function reward(IStaking.Reward[] calldata rewards) external {
        for (uint256 i = 0; i < rewards.length; ++i) {
            paid[rewards[i].node] += rewards[i].amount;
        }
    }

    function approve(address, uint256) external pure returns (bool) {
        return true;
    }

    function slash(address, IStaking.Role, uint256 amount) external pure returns (uint256) {
        return amount;
    }

    function request() external pure returns (uint256) {
        return 0;
    }
}

/// @dev The contract with one more call, which sets any round.
contract PlantedTasks is Tasks {
    using Bits for uint256;

    uint256 private _burntBefore;

    constructor(address neighbours, address registry_, address settlement_)
        Tasks(IERC20(neighbours), IStaking(neighbours), IBeacon(neighbours), registry_, settlement_)
    {}

    function plant(TaskParams calldata params_, Record calldata record) external returns (uint256 taskId) {
        taskId = ++_taskCount;
        Task storage task = _tasks[taskId];
        task.params = params_;
        task.state.operator = operator(taskId);
        task.state.phase = Phase.Revealing;
        task.state.deadline = 1;
        task.state.round = 1;
        (task.state.poolLeft, task.state.forfeited) = (record.poolLeft, record.forfeited);
        _burntBefore = Neighbours(address(staking)).burnt();
        task.state.activeHospitals = Bits.below(record.weights.length);
        task.state.activeVoters = Bits.below(record.voterBonds.length);
        _plantNodes(taskId, task, record);
        _plantRound(task, record);
        for (uint256 i = 0; i < record.scores.length; ++i) {
            if (record.scores[i].length != 0) this.save(taskId, i, record.scores[i]);
        }
    }

    function save(uint256 taskId, uint256 voter, int64[] calldata scores) external {
        Task storage task = _tasks[taskId];
        Scores.save(task.scores, 1, voter, scores);
        Round storage round = task.rounds[1];
        round.revealed = round.revealed.with(voter);
        bool isAsked = task.params.digests || task.params.decoys || round.named != 0;
        if (isAsked && scores[0] == Scores.DOES_NOT_MATCH) round.mismatched = round.mismatched.with(voter);
    }

    function judged(uint256 taskId)
        external
        view
        returns (VoidReason, int64[] memory medians, uint256 accepted, uint256 guilty)
    {
        Round storage round = _tasks[taskId].rounds[1];
        return (round.voidReason, round.medians, round.acceptedCohorts, round.guilty);
    }

    function phase(uint256 taskId) external view returns (Phase) {
        return _tasks[taskId].state.phase;
    }

    function aggregatorBond(uint256 taskId) external view returns (uint256) {
        return _tasks[taskId].aggregatorBond.left;
    }

    /// @dev A task that ended gave what was left to its operator, and burnt its forfeited.
    function left(uint256 taskId) external view returns (uint256) {
        return _tasks[taskId].state.poolLeft + paid(operator(taskId)) + _burnt();
    }

    function forfeited(uint256 taskId) external view returns (uint256) {
        return _tasks[taskId].state.forfeited + _burnt();
    }

    function _burnt() private view returns (uint256) {
        return Neighbours(address(staking)).burnt() - _burntBefore;
    }

    function paid(address account) public view returns (uint256) {
        return _claimable[account] + Neighbours(address(staking)).paid(account);
    }

    /// @dev An account of its own for everybody in every task.
    function node(uint256 taskId, IStaking.Role role, uint256 index) public pure returns (address) {
        return address(uint160(taskId << 32 | (uint256(role) + 1) << 16 | index));
    }

    function operator(uint256 taskId) public pure returns (address) {
        return address(uint160(taskId << 32));
    }

    function _plantNodes(uint256 taskId, Task storage task, Record calldata record) private {
        for (uint256 i = 0; i < record.weights.length; ++i) {
            (uint32 weight, uint128 bond) = (uint32(record.weights[i]), uint128(record.hospitalBonds[i]));
            address hospital = node(taskId, IStaking.Role.Hospital, i);
            task.hospitals.push(HospitalEntry({node: hospital, weight: weight, bond: Bond(bond, 0, 0)}));
            task.memberships[hospital] = Membership(true, IStaking.Role.Hospital, uint8(i));
        }
        for (uint256 i = 0; i < record.voterBonds.length; ++i) {
            uint128 bond = uint128(record.voterBonds[i]);
            address voter = node(taskId, IStaking.Role.Voter, i);
            task.voters.push(VoterEntry({node: voter, bond: Bond(bond, 0, 0), keyHash: 0}));
            task.memberships[voter] = Membership(true, IStaking.Role.Voter, uint8(i));
        }
        task.aggregatorBond = Bond(record.aggregatorBond, 0, 0);
        task.memberships[task.params.aggregator] = Membership(true, IStaking.Role.Aggregator, 0);
    }

    function _plantRound(Task storage task, Record calldata record) private {
        Round storage round = task.rounds[1];
        round.cohorts = uint8(record.cohorts.length);
        for (uint256 k = 0; k < record.cohorts.length; ++k) {
            task.cohorts[Keys.entry(1, k)].members = record.cohorts[k];
            round.members |= record.cohorts[k];
        }
        round.pending = round.members & ~record.committed;
        round.viableCohorts = record.viable;
        round.survivors = record.survivors;
        round.seated = record.seated;
        round.publishedCohorts = record.viable;
        round.droppedCohorts = record.dropped;
        round.named = record.named;
        // Without decoys the sums are known since their publication, with them since their disclosure.
        if (record.disclosed || !task.params.decoys) round.summedCohorts = record.viable;
        round.flippedCohorts = record.flipped;
        round.late = record.late;
    }
}

/// @notice Settling and its arithmetic against the plain Python reference, on the vectors that pytest reads, too.
contract SettlementTest is Test {
    using Bits for uint256;

    string private constant VECTORS = "../../tests/vectors/settlement.json";
    string private constant ROUNDS = "../../tests/vectors/settlement_rounds.jsonl"; // one to a line
    uint256 private constant QUESTIONS = 96;
    uint256 private constant CASES = 160;

    PlantedTasks private _planted;
    ITasks private _registry; // the same
    string private _json; // what is read: the vectors of the arithmetic, or one round

    function setUp() public {
        address neighbours = address(new Neighbours());
        IERC20 token = IERC20(neighbours);
        address registry = address(new TaskRegistry(token, IStaking(neighbours), IBeacon(neighbours), address(0)));
        address settlement = address(new TaskSettlement(token, IStaking(neighbours), IBeacon(neighbours)));
        _planted = new PlantedTasks(neighbours, registry, settlement);
        _registry = ITasks(address(_planted));
        _json = vm.readFile(VECTORS);
        vm.warp(1_000);
    }

    // The arithmetic.

    function test_portion_agreesWithReference() public view {
        string memory key = ".functions.portion.";
        (uint256[] memory amount, uint256[] memory bps) = (_uints(key, "amount"), _uints(key, "basis_points"));
        uint256[] memory result = _results(key);
        for (uint256 i = 0; i < QUESTIONS; ++i) {
            vm.assertEq(Payouts.portion(amount[i], bps[i]), result[i]);
        }
    }

    function test_penalty_agreesWithReference() public view {
        string memory key = ".functions.penalty.";
        (uint256[] memory bond, uint256[] memory bps) = (_uints(key, "bond"), _uints(key, "basis_points"));
        (uint256[] memory left, uint256[] memory result) = (_uints(key, "left"), _results(key));
        for (uint256 i = 0; i < QUESTIONS; ++i) {
            vm.assertEq(Payouts.penalty(bond[i], bps[i], left[i]), result[i]);
        }
    }

    function test_roundPart_agreesWithReference() public view {
        string memory key = ".functions.round_part.";
        (uint256[] memory pool, uint256[] memory rounds) = (_uints(key, "pool"), _uints(key, "rounds"));
        (uint256[] memory left, uint256[] memory result) = (_uints(key, "left"), _results(key));
        for (uint256 i = 0; i < QUESTIONS; ++i) {
            vm.assertEq(Payouts.roundPart(pool[i], rounds[i], left[i]), result[i]);
        }
    }

    function test_gain_agreesWithReference() public view {
        string memory key = ".functions.gain.";
        (uint256[] memory weight, int256[] memory median) = (_uints(key, "weight"), _ints(key, "median"));
        uint256[] memory result = _results(key);
        for (uint256 i = 0; i < QUESTIONS; ++i) {
            vm.assertEq(Payouts.gain(weight[i], int64(median[i])), result[i]);
        }
    }

    function test_rankClaim_agreesWithReference() public view {
        string memory key = ".functions.rank_claim.";
        (uint256[] memory rank, uint256[] memory decay) = (_uints(key, "rank"), _uints(key, "decay_bps"));
        uint256[] memory result = _results(key);
        for (uint256 i = 0; i < QUESTIONS; ++i) {
            vm.assertEq(Ranks.claim(rank[i], decay[i]), result[i]);
        }
    }

    function test_share_agreesWithReference() public view {
        string memory key = ".functions.share.";
        (uint256[] memory amount, uint256[] memory part) = (_uints(key, "amount"), _uints(key, "part"));
        (uint256[] memory whole, uint256[] memory result) = (_uints(key, "whole"), _results(key));
        for (uint256 i = 0; i < QUESTIONS; ++i) {
            vm.assertEq(Payouts.share(amount[i], part[i], whole[i]), result[i]);
        }
    }

    function test_isNear_agreesWithReference() public view {
        string memory key = ".functions.is_near.";
        (int256[] memory score, int256[] memory median) = (_ints(key, "score"), _ints(key, "median"));
        (uint256[] memory abs, uint256[] memory bps) = (_uints(key, "tolerance_abs"), _uints(key, "tolerance_bps"));
        uint256[] memory result = _results(key);
        uint256 near;
        for (uint256 i = 0; i < QUESTIONS; ++i) {
            vm.assertTrue(Payouts.isNear(int64(score[i]), int64(median[i]), abs[i], bps[i]) == (result[i] == 1));
            near += result[i];
        }
        vm.assertTrue(0 < near && near < QUESTIONS);
    }

    function test_lower_agreesWithReference() public view {
        uint256 count;
        for (string memory key = _item(".functions.lower", 0); this.has(key); key = _item(".functions.lower", ++count)) {
            int64[] memory values = _narrow(_ints(key, ".values"));
            vm.assertEq(Medians.lower(values), _int(key, ".result"));
        }
        vm.assertGt(count, 40);
    }

    function test_portion_isTheFloor(uint128 amount, uint16 bps) public pure {
        uint256 portion = Payouts.portion(amount, bps);
        vm.assertLe(portion * 10_000, uint256(amount) * bps);
        vm.assertGt((portion + 1) * 10_000, uint256(amount) * bps);
    }

    function test_roundPart_ofAllRoundsStaysWithinPool(uint128 pool, uint16 rounds, uint128 left) public pure {
        vm.assume(rounds > 0);
        uint256 part = Payouts.roundPart(pool, rounds, left);
        vm.assertLe(part, left);
        vm.assertLe(part * rounds, pool);
        vm.assertTrue(part == left || (part + 1) * rounds > pool);
    }

    /// @dev Ranks are a permutation, claims fall with them, and their sum is what all share.
    function test_standings_areAFallingOrder(int64[] memory medians, int64 floor, uint16 decay) public pure {
        uint256 count = medians.length < 64 ? medians.length : 64;
        assembly ("memory-safe") {
            mstore(medians, count)
        }
        decay = decay % 10_001;
        vm.assume(floor > 0);
        (uint256 best, uint256 claims) = Ranks.standings(medians, floor, decay);
        vm.assertLe(claims, type(uint128).max);
        (uint256 taken, uint256 ranked) = (0, 0);
        for (uint256 i = 0; i < count; ++i) {
            if (medians[i] < floor) continue;
            uint256 rank = Ranks.rankOf(medians, i);
            vm.assertTrue(!taken.has(rank));
            taken = taken.with(rank);
            ++ranked;
            claims -= Ranks.claim(rank, decay);
            vm.assertTrue((rank == 0) == best.has(i));
            for (uint256 j = 0; j < count; ++j) {
                if (medians[j] >= floor && medians[j] > medians[i]) {
                    vm.assertGt(rank, Ranks.rankOf(medians, j));
                    vm.assertLe(Ranks.claim(rank, decay), Ranks.claim(Ranks.rankOf(medians, j), decay));
                }
            }
        }
        vm.assertEq(claims, 0);
        vm.assertEq(taken, Bits.below(ranked));
    }

    // Whole rounds.

    function test_settle_agreesWithReference() public {
        uint256 count;
        for (; _readRound(); ++count) {
            uint256 id = _settled();
            _compareRound(id, ".answer.");
            _compareAccounts(id);
        }
        vm.assertEq(count, CASES);
    }

    function test_explain_agreesWithReference() public {
        uint256 count;
        for (; _readRound(); ++count) {
            _comparePayouts(_settled(), ".answer.");
        }
        vm.assertEq(count, CASES);
    }

    function _readRound() private returns (bool) {
        _json = vm.readLine(ROUNDS);
        return bytes(_json).length != 0;
    }

    function _settled() private returns (uint256 id) {
        id = _planted.plant(_params(".terms."), _record(".record."));
        _registry.settle(id, 1);
        if (_planted.phase(id) != ITaskTypes.Phase.Disclosing) return id;
        vm.warp(block.timestamp + 2); // and nobody discloses
        _planted.tick(id);
    }

    function _compareRound(uint256 id, string memory key) private view {
        (ITaskTypes.VoidReason reason, int64[] memory medians, uint256 accepted, uint256 guilty) = _planted.judged(id);
        vm.assertEq(uint256(reason), _uint(key, "void"));
        int256[] memory expected = _ints(key, "medians");
        vm.assertEq(medians.length, expected.length);
        for (uint256 k = 0; k < expected.length; ++k) {
            vm.assertEq(medians[k], expected[k]);
        }
        vm.assertEq(accepted, _uint(key, "accepted"));
        vm.assertEq(guilty, _uint(key, "guilty"));
        vm.assertEq(_planted.left(id), _uint(key, "pool_left"));
        vm.assertEq(_planted.forfeited(id), _uint(key, "forfeited"));
    }

    function _compareAccounts(uint256 id) private view {
        uint256[] memory rewards = _uints("", ".answer.rewards");
        uint256[] memory slashes = _uints("", ".answer.slashes");
        ITaskTypes.Hospital[] memory hospitals = _registry.hospitals(id);
        ITaskTypes.Voter[] memory voters = _registry.voters(id);
        vm.assertEq(rewards.length, hospitals.length + voters.length + 1);
        uint256[] memory bonds = _uints("", ".record.hospital_bonds");
        for (uint256 i = 0; i < hospitals.length; ++i) {
            vm.assertEq(_planted.paid(hospitals[i].node), rewards[i]);
            vm.assertEq(bonds[i] - hospitals[i].bond, slashes[i]);
        }
        bonds = _uints("", ".record.voter_bonds");
        for (uint256 i = 0; i < voters.length; ++i) {
            vm.assertEq(_planted.paid(voters[i].node), rewards[hospitals.length + i]);
            vm.assertEq(bonds[i] - voters[i].bond, slashes[hospitals.length + i]);
        }
        vm.assertEq(_planted.paid(_registry.params(id).aggregator), rewards[rewards.length - 1]);
        uint256 burnt = _uint("", ".record.aggregator_bond") - _planted.aggregatorBond(id);
        vm.assertEq(burnt, slashes[slashes.length - 1]);
    }

    /// @dev Contract and reference give the same payout of every account, with the same paid amounts.
    function _comparePayouts(uint256 id, string memory key) private view {
        uint256[][7] memory expected;
        string[7] memory names = ["roles", "codes", "bases", "parts", "wholes", "rewards", "slashes"];
        for (uint256 i = 0; i < names.length; ++i) {
            expected[i] = _uints(key, names[i]);
        }
        uint256 hospitals = _registry.hospitals(id).length;
        for (uint256 i = 0; i < expected[0].length; ++i) {
            uint256 role = expected[0][i];
            address account = role == uint256(IStaking.Role.Aggregator)
                ? _registry.params(id).aggregator
                : _planted.node(id, IStaking.Role(role), role == 0 ? i : i - hospitals);
            uint256[7] memory actual = abi.decode(abi.encode(_registry.explain(id, 1, account)), (uint256[7]));
            for (uint256 j = 0; j < actual.length; ++j) {
                vm.assertEq(actual[j], expected[j][i]);
            }
        }
    }

    // The vectors. Numbers are decimal strings there; each is read in a call of its own, whose memory ends with it.

    function uints(string calldata key) external view returns (uint256[] memory) {
        return vm.parseJsonUintArray(_json, key);
    }

    function ints(string calldata key) external view returns (int256[] memory) {
        return vm.parseJsonIntArray(_json, key);
    }

    function one(string calldata key) external view returns (int256) {
        return vm.parseJsonInt(_json, key);
    }

    function has(string calldata key) external view returns (bool) {
        return vm.keyExistsJson(_json, key);
    }

    function _params(string memory key) private view returns (ITaskTypes.TaskParams memory p) {
        p.aggregator = address(uint160(uint256(keccak256(bytes(_json)))));
        p.pool = uint128(_uint(key, "pool"));
        p.rounds = uint16(_uint(key, "rounds"));
        p.hospitalBond = uint128(_uint(key, "hospital_bond"));
        p.maxHospitals = uint16(_uint(key, "max_hospitals"));
        p.voterBond = uint128(_uint(key, "voter_bond"));
        p.aggregatorBond = uint128(_uint(key, "aggregator_bond"));
        p.digests = _uint(key, "digests") == 1;
        p.decoys = _uint(key, "decoys") == 1;
        p.minReveals = uint16(_uint(key, "min_reveals"));
        p.acceptFloor = int64(_int(key, "accept_floor"));
        p.harmfulBelow = int64(_int(key, "harmful_below"));
        p.toleranceAbs = uint64(_uint(key, "tolerance_abs"));
        p.toleranceBps = uint16(_uint(key, "tolerance_bps"));
        p.decoyMargin = uint64(_uint(key, "decoy_margin"));
        p.hospitalShareBps = uint16(_uint(key, "hospital_share_bps"));
        p.voterShareBps = uint16(_uint(key, "voter_share_bps"));
        p.aggregatorShareBps = uint16(_uint(key, "aggregator_share_bps"));
        p.rankFloor = int64(_int(key, "rank_floor"));
        p.rankDecayBps = uint16(_uint(key, "rank_decay_bps"));
        p.harmfulSlashBps = uint16(_uint(key, "harmful_slash_bps"));
        p.withheldSlashBps = uint16(_uint(key, "withheld_slash_bps"));
        p.notRevealedSlashBps = uint16(_uint(key, "not_revealed_slash_bps"));
        p.failedDecoySlashBps = uint16(_uint(key, "failed_decoy_slash_bps"));
        p.notPublishedSlashBps = uint16(_uint(key, "not_published_slash_bps"));
        p.publishWindow = 1;
    }

    function _record(string memory key) private view returns (Record memory r) {
        r.poolLeft = uint128(_uint(key, "pool_left"));
        r.forfeited = uint96(_uint(key, "forfeited"));
        r.late = _uint(key, "late") == 1;
        r.weights = _uints(key, "weights");
        r.hospitalBonds = _uints(key, "hospital_bonds");
        r.voterBonds = _uints(key, "voter_bonds");
        r.aggregatorBond = uint128(_uint(key, "aggregator_bond"));
        r.cohorts = _uints(key, "cohorts");
        r.viable = uint64(_uint(key, "viable"));
        r.committed = _uint(key, "committed");
        r.survivors = _uint(key, "survivors");
        r.flipped = uint64(_uint(key, "flipped"));
        r.disclosed = _uint(key, "disclosed") == 1;
        r.seated = _uint(key, "seated");
        r.dropped = uint64(_uint(key, "dropped"));
        r.named = _uint(key, "named");
        r.scores = new int64[][](r.voterBonds.length);
        for (uint256 i = 0; i < r.scores.length; ++i) {
            r.scores[i] = _narrow(_ints(_item(string.concat(key, "scores"), i), ""));
        }
    }

    function _uints(string memory key, string memory name) private view returns (uint256[] memory) {
        return this.uints(string.concat(key, name));
    }

    function _ints(string memory key, string memory name) private view returns (int256[] memory) {
        return this.ints(string.concat(key, name));
    }

    function _int(string memory key, string memory name) private view returns (int256) {
        return this.one(string.concat(key, name));
    }

    function _uint(string memory key, string memory name) private view returns (uint256) {
        return uint256(_int(key, name));
    }

    function _results(string memory key) private view returns (uint256[] memory results) {
        results = _uints(key, "result");
        vm.assertEq(results.length, QUESTIONS);
    }

    function _item(string memory list, uint256 index) private pure returns (string memory) {
        return string.concat(list, "[", vm.toString(index), "]");
    }

    function _narrow(int256[] memory wide) private pure returns (int64[] memory narrow) {
        narrow = new int64[](wide.length);
        for (uint256 i = 0; i < wide.length; ++i) {
            narrow[i] = int64(wide[i]);
        }
    }
}
