// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {RLP} from "@openzeppelin/contracts/utils/RLP.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IBeacon} from "../../src/interfaces/IBeacon.sol";
import {IStaking} from "../../src/interfaces/IStaking.sol";
import {ITaskRounds} from "../../src/interfaces/ITaskRounds.sol";
import {ITaskTypes} from "../../src/interfaces/ITaskTypes.sol";
import {Bits} from "../../src/libraries/Bits.sol";
import {Bls12381} from "../../src/libraries/Bls12381.sol";
import {Tickets} from "../../src/libraries/Tickets.sol";
import {IDeployedModelShares, IDeployedStaking, IDeployedTasks} from "./Deployed.sol";
import {Line, Lines, Points, Signer} from "./Crypto.sol";
import {Test} from "./Vm.sol";

/// @notice Contracts at fixed addresses (vectors are bound to them), staked nodes, and one step per phase.
abstract contract Fixture is Test {
    using Bits for uint256;
    using RLP for RLP.Encoder;

    uint256 internal constant SUPPLY = 1_000_000e18;
    uint256 internal constant STAKE = 1_000e18;
    uint32 internal constant UNBONDING = 7 days;
    uint32 internal constant VESTING = 1 days;
    uint256 internal constant COMMISSION = 1_000;
    uint256 internal constant WINDOW = 100;
    uint256 internal constant HOSPITALS = 4;
    uint256 internal constant VOTERS = 3;
    uint256 internal constant LOOKAHEAD = 2;

    address internal constant OPERATOR = address(0x30001);
    address internal constant AGGREGATOR = address(0x30002);
    address internal constant STRANGER = address(0x30003);
    address internal constant GUARDIAN = address(0x30004);
    IDeployedStaking internal constant staking = IDeployedStaking(address(0x57A4));
    IDeployedTasks internal constant tasks = IDeployedTasks(address(0x7A5C));

    IERC20 internal token;
    IBeacon internal beacon;
    IDeployedModelShares internal modelShares;
    uint256 internal id = 1;
    /// @dev Hospitals in the order of their commitments, where that is not the order of index.
    mapping(uint256 task => mapping(uint256 round => uint256[])) private _arrived;

    function setUp() public virtual {
        vm.warp(1_000_000);
        vm.roll(1_000);
        token = IERC20(_deploy("ConsiliumToken", abi.encode(SUPPLY, address(this))));
        beacon = IBeacon(_deploy("PrevrandaoBeacon", abi.encode(LOOKAHEAD)));
        vm.etch(address(staking), _deploy("Staking", abi.encode(token, UNBONDING, VESTING)).code);
        address registry = _deploy("TaskRegistry", abi.encode(token, staking, beacon, GUARDIAN));
        address settlement = _deploy("TaskSettlement", abi.encode(token, staking, beacon));
        vm.etch(address(tasks), _deploy("Tasks", abi.encode(token, staking, beacon, registry, settlement)).code);
        modelShares = IDeployedModelShares(_deploy("ModelShares", abi.encode(token, staking, tasks)));
        staking.connect(address(tasks), address(modelShares));
        vm.prank(address(tasks)); // whose constructor ran at another address
        token.approve(address(staking), type(uint256).max);
        token.transfer(OPERATOR, 10 * STAKE);
        vm.prank(OPERATOR);
        token.approve(address(tasks), type(uint256).max);
        _stake(AGGREGATOR, IStaking.Role.Aggregator);
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            _stake(_hospital(i), IStaking.Role.Hospital);
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            _stake(_voter(i), IStaking.Role.Voter);
            _register(_voter(i), _secret(i));
        }
    }

    function _deploy(string memory name, bytes memory arguments) private returns (address) {
        return vm.deployCode(_artifact(name), arguments);
    }

    // Nodes.

    function _hospital(uint256 i) internal pure returns (address) {
        return address(uint160(0x10001 + i));
    }

    function _voter(uint256 i) internal pure returns (address) {
        return address(uint160(0x20001 + i));
    }

    function _secret(uint256 i) internal pure returns (uint256) {
        return uint256(keccak256(abi.encode("secret", i))) % Bls12381.ORDER;
    }

    function _stake(address node, IStaking.Role role) internal {
        token.transfer(node, STAKE);
        vm.startPrank(node);
        token.approve(address(staking), STAKE);
        staking.register(role, COMMISSION, STAKE);
        vm.stopPrank();
    }

    function _register(address voter, uint256 secret) internal {
        bytes memory key = Signer.publicKey(secret);
        bytes memory proof = _possession(voter, secret, key);
        vm.prank(voter);
        staking.registerVoterKey(key, proof);
    }

    function _possession(address voter, uint256 secret, bytes memory key) internal view returns (bytes memory) {
        return Signer.sign(secret, abi.encode(block.chainid, address(staking), voter, key), Tickets.POSSESSION_DOMAIN);
    }

    function _locked(address node, IStaking.Role role) internal view returns (uint256) {
        return staking.stakeOf(node, role).locked;
    }

    // Joining.

    function _params() internal pure returns (ITaskTypes.TaskParams memory) {
        return ITaskTypes.TaskParams({
            specHash: keccak256("specification"),
            aggregator: AGGREGATOR,
            digests: false,
            decoys: false,
            masked: false,
            updateBits: 0,
            laneBits: 0,
            pool: 1_000e18,
            hospitalBond: 100e18,
            voterBond: 50e18,
            aggregatorBond: 200e18,
            tickBounty: 0,
            rounds: 2,
            cohorts: 2,
            minCohortSize: 2,
            minHospitals: 2,
            maxHospitals: uint16(HOSPITALS),
            minVoters: 2,
            maxVoters: uint16(VOTERS),
            seats: 3,
            minReveals: 2,
            statisticsBlobs: 1,
            updateBlobs: 1,
            shards: 1,
            rowsPerWeight: 100,
            maxWeight: 8,
            acceptFloor: 0,
            harmfulBelow: -10_000,
            toleranceAbs: 500,
            toleranceBps: 1_000,
            decoyMargin: 0,
            hospitalShareBps: 7_000,
            voterShareBps: 2_000,
            aggregatorShareBps: 1_000,
            rankDecayBps: 0,
            harmfulSlashBps: 2_000,
            withheldSlashBps: 0,
            notRevealedSlashBps: 5_000,
            failedDecoySlashBps: 0,
            notPublishedSlashBps: 5_000,
            joinWindow: uint32(WINDOW),
            commitWindow: uint32(WINDOW),
            uploadWindow: uint32(WINDOW),
            publishWindow: uint32(WINDOW),
            scoreWindow: uint32(WINDOW),
            revealWindow: uint32(WINDOW),
            rankFloor: 0
        });
    }

    function _propose(ITaskTypes.TaskParams memory params) internal {
        vm.prank(OPERATOR);
        id = tasks.propose(params);
    }

    function _fund(uint256 amount) internal {
        vm.prank(OPERATOR);
        tasks.fund(id, uint128(amount));
    }

    /// @dev Hospital i has weight i + 1.
    function _joinHospital(uint256 i) internal {
        _joinAs(_hospital(i), 100 * i + 50);
    }

    function _joinAs(address hospital, uint256 rows) internal {
        bytes memory key = _transportKey(hospital);
        bytes memory proof = _transportProof(hospital, hospital);
        vm.prank(hospital);
        tasks.joinAsHospital(id, rows, key, proof, keccak256("encryption key"));
    }

    /// @dev Every account's own.
    function _transportSecret(address holder) internal pure returns (uint256) {
        return uint256(keccak256(abi.encode("transport", holder))) >> 1;
    }

    function _transportKey(address holder) internal pure returns (bytes memory) {
        (uint256 x, uint256 y) = vm.publicKeyP256(_transportSecret(holder));
        return abi.encode(x, y);
    }

    /// @dev That `hospital` joins by the key of `holder`.
    function _transportProof(address holder, address hospital) internal view returns (bytes memory) {
        bytes memory message = tasks.transportMessage(id, hospital, _transportKey(holder));
        (bytes32 r, bytes32 s) = vm.signP256(_transportSecret(holder), sha256(message));
        return abi.encode(r, s);
    }

    function _joinVoter(uint256 i) internal {
        vm.prank(_voter(i));
        tasks.joinAsVoter(id);
    }

    function _joinAggregator() internal {
        vm.prank(AGGREGATOR);
        tasks.joinAsAggregator(id);
    }

    function _joinAll() internal {
        _joinAggregator();
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            _joinHospital(i);
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            _joinVoter(i);
        }
    }

    // Training.

    function _round() internal view returns (uint256) {
        return tasks.state(id).round;
    }

    function _roundState() internal view returns (ITaskTypes.RoundState memory) {
        return tasks.roundState(id, _round());
    }

    function _line(uint256 round, uint256 hospital, uint256 blob) internal view returns (Line memory) {
        return Lines.from(abi.encode(id, round, hospital, blob));
    }

    /// @dev By its definition rather than by the contract's own library.
    function _pointHash(uint256 round, address hospital, uint256 blob, bytes memory point)
        internal
        view
        returns (bytes32)
    {
        bytes32 context =
            keccak256(abi.encode(keccak256("CONSILIUM-V1-POINT"), block.chainid, address(tasks), id, round));
        return keccak256(bytes.concat(context, bytes20(hospital), bytes32(blob), point));
    }

    function _hashes(uint256 round, address hospital, Line[] memory lines)
        internal
        view
        returns (bytes32[] memory hashes)
    {
        hashes = new bytes32[](lines.length);
        for (uint256 blob = 0; blob < lines.length; ++blob) {
            hashes[blob] = _pointHash(round, hospital, blob, Lines.compressed(lines[blob]));
        }
    }

    function _updateOf(bytes32[] memory hashes) internal pure returns (ITaskTypes.Update memory) {
        return ITaskTypes.Update({pointHashes: hashes, shareBundle: "", base: Lines.BASE});
    }

    function _updateOf(bytes32 hash) internal pure returns (ITaskTypes.Update memory) {
        bytes32[] memory hashes = new bytes32[](1);
        hashes[0] = hash;
        return _updateOf(hashes);
    }

    function _lines(uint256 round, uint256 hospital) internal view returns (Line[] memory lines) {
        lines = new Line[](round == 0 ? tasks.params(id).statisticsBlobs : tasks.params(id).updateBlobs);
        for (uint256 blob = 0; blob < lines.length; ++blob) {
            lines[blob] = _line(round, hospital, blob);
        }
    }

    function _update(uint256 round, uint256 hospital) internal view returns (ITaskTypes.Update memory) {
        return _updateOf(_hashes(round, _hospital(hospital), _lines(round, hospital)));
    }

    function _commit(uint256 hospital) internal {
        uint256 round = _round();
        _commit(round, _hospital(hospital), _update(round, hospital));
        _arrive(round, hospital);
    }

    /// @dev Notes that the hospital's commitments follow those of all that arrived before.
    function _arrive(uint256 round, uint256 hospital) internal {
        _arrived[id][round].push(hospital);
    }

    function _commit(uint256 round, address sender, ITaskTypes.Update memory update) internal {
        uint256 cohort = _cohortOf(round, sender);
        vm.prank(sender);
        tasks.commitUpdate(id, round, cohort, update);
    }

    /// @dev 0 for a stranger.
    function _cohortOf(uint256 round, address hospital) internal view returns (uint256 cohort) {
        uint256 index = uint160(hospital) - uint160(_hospital(0));
        uint256 cohorts = tasks.roundState(id, round).cohorts;
        if (index > 255) return 0;
        while (cohort < cohorts && !tasks.cohortMembers(id, round, cohort).has(index)) ++cohort;
        return cohort == cohorts ? 0 : cohort;
    }

    function _commitAll() internal {
        uint256 members = _roundState().members;
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            if (members.has(i)) _commit(i);
        }
    }

    function _fix(uint256 survivors) internal {
        uint256 round = _round();
        vm.prank(AGGREGATOR);
        tasks.fixSurvivors(id, round, survivors);
    }

    // Publishing.

    /// @dev A cohort's commitments to one blob, as `sumCommitments` takes them; and the hash of the survivors' sum.
    function _sum(uint256 round, uint256 cohort, uint256 survivors, uint256 blob)
        internal
        view
        returns (ITaskTypes.Commitments memory all, bytes32 hash)
    {
        all.order = _order(round, cohort);
        all.others = new bytes32[](all.order.length - survivors.count());
        ITaskTypes.Hospital[] memory hospitals = tasks.hospitals(id);
        Line memory sum;
        uint256 others;
        for (uint256 i = 0; i < all.order.length; ++i) {
            uint256 index = uint8(all.order[i]);
            Line memory line = _line(round, index, blob);
            if (!survivors.has(index)) {
                all.others[others++] = _pointHash(round, hospitals[index].node, blob, Lines.compressed(line));
                continue;
            }
            all.points = bytes.concat(all.points, abi.encode(Lines.point(line)));
            Lines.addWeighted(sum, line, round == 0 ? 1 : hospitals[index].weight);
        }
        hash = Lines.hash(sum);
    }

    /// @dev What `PointsShown` has of these commitments.
    function _shown(ITaskTypes.Commitments memory all, uint256 survivors)
        internal
        pure
        returns (bytes memory hospitals, bytes memory points)
    {
        uint256 next;
        for (uint256 i = 0; i < all.order.length; ++i) {
            if (!survivors.has(uint8(all.order[i]))) continue;
            hospitals = bytes.concat(hospitals, all.order[i]);
            points = bytes.concat(points, Bls12381.compress(Points.pointAt(all.points, next++)));
        }
    }

    /// @dev The cohort's hospitals that committed, in the chain's order.
    function _order(uint256 round, uint256 cohort) internal view returns (bytes memory order) {
        uint256 left = tasks.cohortMembers(id, round, cohort) & tasks.roundState(id, round).committed;
        uint256[] storage arrived = _arrived[id][round];
        for (uint256 i = 0; i < arrived.length; ++i) {
            if (!left.has(arrived[i])) continue;
            left = left.without(arrived[i]);
            order = bytes.concat(order, bytes1(uint8(arrived[i])));
        }
        for (uint256 i = 0; left >> i != 0; ++i) {
            if (left.has(i)) order = bytes.concat(order, bytes1(uint8(i)));
        }
    }

    function _survivors(uint256 round, uint256 cohort) internal view returns (uint256) {
        return tasks.cohortMembers(id, round, cohort) & tasks.roundState(id, round).survivors;
    }

    function _sumCohort(uint256 cohort, uint256 blob) internal returns (bytes32 hash) {
        uint256 round = _round();
        ITaskTypes.Commitments memory points;
        (points, hash) = _sum(round, cohort, _survivors(round, cohort), blob);
        tasks.sumCommitments(id, round, cohort, blob, points);
    }

    function _publish(uint256 cohort, uint256 blob, bytes32 hash) internal {
        uint256 round = _round();
        _setBlob(hash);
        vm.prank(AGGREGATOR);
        tasks.publish(id, round, cohort, blob, 0, 1);
    }

    function _publishDigest(uint256 cohort, bytes32 hash) internal {
        uint256 round = _round();
        bytes32[] memory hashes = new bytes32[](1);
        hashes[0] = hash;
        vm.prank(AGGREGATOR);
        tasks.publishDigests(id, round, cohort, 0, hashes);
    }

    function _setBlob(bytes32 hash) internal {
        bytes32[] memory hashes = new bytes32[](1);
        hashes[0] = hash;
        vm.blobhashes(hashes);
    }

    function _publishAll() internal {
        ITaskTypes.RoundState memory round = _roundState();
        uint256 blobs = _round() == 0 ? tasks.params(id).statisticsBlobs : tasks.params(id).updateBlobs;
        for (uint256 cohort = 0; cohort < round.cohorts; ++cohort) {
            if (!round.viableCohorts.has(cohort)) continue;
            for (uint256 blob = 0; blob < blobs; ++blob) {
                _publish(cohort, blob, _sumCohort(cohort, blob));
            }
        }
    }

    // The beacon.

    function _header(uint256 number) internal pure returns (bytes memory) {
        RLP.Encoder memory list = RLP.encoder();
        for (uint256 i = 0; i < 6; ++i) {
            if (i == 2) list.push(address(0));
            else list.push(keccak256(abi.encode(i)));
        }
        list.push(new bytes(256)).push(uint256(0)).push(number).push(uint256(30_000_000)).push(uint256(21_000));
        list.push(uint256(1_000)).push(bytes("")).push(_prevrandao(number)).push(bytes(hex"0000000000000000"));
        return list.push(uint256(7)).push(bytes32(0)).encode();
    }

    function _prevrandao(uint256 number) internal pure returns (bytes32) {
        return keccak256(abi.encode("prevrandao", number));
    }

    function _seedOf(uint256 number) internal pure returns (bytes32) {
        return keccak256(abi.encode(_prevrandao(number), number));
    }

    /// @dev Lets the chain reach the block after the awaited one, and returns that one's header; nothing if none is.
    function _reachBeacon() internal returns (bytes memory header) {
        uint256 number = _roundState().beaconRequest;
        if (number == 0) return "";
        header = _header(number);
        vm.roll(number + 1);
        vm.setBlockhash(number, keccak256(header));
    }

    function _form() internal {
        tasks.formCohorts(id, _reachBeacon());
    }

    function _draw() internal {
        tasks.drawSeats(id, _reachBeacon());
    }

    // Judging.

    function _ticket(uint256 voter) internal view returns (bytes memory) {
        return Signer.sign(_secret(voter), tasks.ticketMessage(id, _round(), _voter(voter)), Tickets.TICKET_DOMAIN);
    }

    /// @dev Slashed voters have a smaller chance of a seat.
    function _wins(uint256 voter) internal view returns (bool) {
        uint256 threshold =
            Tickets.threshold(tasks.params(id).seats, tasks.voters(id)[voter].bond, _roundState().seatWeight);
        return threshold == type(uint256).max || uint256(keccak256(_ticket(voter))) < threshold;
    }

    function _scores(int64 each) internal view returns (int64[] memory scores) {
        scores = new int64[](_roundState().cohorts);
        for (uint256 i = 0; i < scores.length; ++i) {
            scores[i] = each;
        }
    }

    function _salt(uint256 voter) internal pure returns (bytes32) {
        return keccak256(abi.encode("salt", voter));
    }

    function _score(uint256 voter, int64[] memory scores) internal {
        uint256 round = _round();
        bytes32 commitment = tasks.scoreCommitment(id, round, _voter(voter), scores, _salt(voter));
        bytes memory ticket = _ticket(voter);
        bytes memory key = Signer.publicKey(_secret(voter));
        vm.prank(_voter(voter));
        tasks.commitScores(id, round, key, ticket, commitment);
    }

    function _reveal(uint256 voter, int64[] memory scores) internal {
        uint256 round = _round();
        vm.prank(_voter(voter));
        tasks.revealScores(id, round, scores, _salt(voter));
    }

    /// @dev All voters give every cohort the same score.
    function _scoreAll(int64 each) internal {
        int64[] memory scores = _scores(each);
        for (uint256 i = 0; i < VOTERS; ++i) {
            _score(i, scores);
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            _reveal(i, scores);
        }
    }

    // From start to a phase.

    function _toStatistics() internal {
        _propose(_params());
        _joinAll();
    }

    function _toForming() internal {
        _toStatistics();
        _runTraining();
    }

    function _toCommitting() internal {
        _toForming();
        _form();
    }

    function _toUploading() internal {
        _toCommitting();
        _commitAll();
    }

    function _toPublishing() internal {
        _toUploading();
        _fix(_roundState().members);
    }

    function _toDrawing() internal {
        _toPublishing();
        _publishAll();
    }

    function _toScoring() internal {
        _toDrawing();
        _draw();
    }

    function _toRevealing(int64 each) internal {
        _toScoring();
        for (uint256 i = 0; i < VOTERS; ++i) {
            _score(i, _scores(each));
        }
    }

    /// @dev Committing to published, with everybody.
    function _runTraining() internal {
        _commitAll();
        _fix(_roundState().committed);
        _publishAll();
    }

    function _runRound(int64 each) internal {
        _form();
        _runTraining();
        _draw();
        _scoreAll(each);
        tasks.settle(id, _round());
    }

    function _pass() internal {
        vm.warp(tasks.state(id).deadline + 1);
    }

    function _assertPhase(ITaskTypes.Phase phase) internal view {
        vm.assertEq(uint256(tasks.state(id).phase), uint256(phase));
    }

    function _assertVoid(uint256 round, ITaskTypes.VoidReason reason) internal view {
        ITaskTypes.RoundState memory state = tasks.roundState(id, round);
        vm.assertEq(uint256(state.outcome), uint256(ITaskTypes.Outcome.Void));
        vm.assertEq(uint256(state.voidReason), uint256(reason));
    }

    /// @dev Every token is in a wallet, staked, a reward, in a task's pool, or a refund or bounty to claim; the rest
    ///      is burnt. Rewards lose less than two units a node to rounding, which stay in Staking.
    function _assertConserved() internal view {
        uint256 wallets = token.balanceOf(address(this)) + token.balanceOf(OPERATOR) + token.balanceOf(AGGREGATOR)
            + token.balanceOf(STRANGER);
        uint256 stakes = _staked(AGGREGATOR, IStaking.Role.Aggregator);
        uint256 rewards = _rewards(AGGREGATOR, IStaking.Role.Aggregator);
        for (uint256 i = 0; i < HOSPITALS; ++i) {
            wallets += token.balanceOf(_hospital(i));
            stakes += _staked(_hospital(i), IStaking.Role.Hospital);
            rewards += _rewards(_hospital(i), IStaking.Role.Hospital);
        }
        for (uint256 i = 0; i < VOTERS; ++i) {
            wallets += token.balanceOf(_voter(i));
            stakes += _staked(_voter(i), IStaking.Role.Voter);
            rewards += _rewards(_voter(i), IStaking.Role.Voter);
        }
        uint256 pools;
        for (uint256 task = 1; task <= tasks.taskCount(); ++task) {
            pools += tasks.state(task).poolLeft;
        }
        (uint256 inStaking, uint256 inTasks) = (token.balanceOf(address(staking)), token.balanceOf(address(tasks)));
        vm.assertEq(stakes, staking.totalStaked());
        vm.assertLe(stakes + rewards, inStaking);
        vm.assertLe(inStaking, stakes + rewards + 2 * (HOSPITALS + VOTERS + 1));
        uint256 claims = tasks.claimable(OPERATOR) + tasks.claimable(STRANGER) + tasks.claimable(address(this));
        vm.assertEq(claims, tasks.totalClaimable());
        vm.assertEq(pools + tasks.totalClaimable(), inTasks);
        vm.assertEq(wallets + inStaking + inTasks, token.totalSupply());
    }

    /// @dev The unclaimed rewards of a node without delegators, vested or not.
    function _rewards(address node, IStaking.Role role) internal view returns (uint256) {
        (,, uint256 claimable) = staking.positionOf(node, node, role);
        return claimable + (staking.poolOf(node, role).unvestedX48 >> 48);
    }

    function _earned(address node) internal view returns (uint256 total) {
        for (uint256 role = 0; role <= uint256(type(IStaking.Role).max); ++role) {
            total += _rewards(node, IStaking.Role(role));
        }
    }

    function _staked(address node, IStaking.Role role) internal view returns (uint256) {
        IStaking.Stake memory own = staking.stakeOf(node, role);
        return uint256(own.active) + own.unbonding;
    }
}
