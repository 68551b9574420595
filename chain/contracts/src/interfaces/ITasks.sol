// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @title Tasks and their rounds: propose, join, train, commit, publish, judge, settle.
/// @notice Round 0 is the statistics round (one cohort of everybody, weight 1 each, not judged, not paid);
///         rounds 1 … `rounds` train. Amounts in the token's smallest unit, times in seconds, scores in
///         millionths of the task's metric. Hospitals and voters are known by their index of joining,
///         and sets of them are bit maps: bit `i` stands for index `i`.
interface ITasks {
    enum Phase {
        None, // no such task
        Joining, // hospitals, voters and the aggregator lock their bonds
        Forming, // waits for the beacon's value that deals the cohorts
        Committing, // hospitals post commitments with openings
        Uploading, // hospitals hand their updates to the aggregator, which then fixes the survivors
        Publishing, // the aggregator publishes each cohort's sum
        Drawing, // waits for the beacon's value that draws the seats
        Scoring, // seated voters commit to scores
        Revealing, // and reveal them
        Ended
    }

    enum Outcome {
        Pending,
        Settled,
        Void
    }

    enum VoidReason {
        None,
        TooFewHospitals, // no cohort reached its minimum size
        SurvivorsNotFixed, // the aggregator let the upload phase pass
        NotPublished, // the aggregator let the publishing phase pass
        TooFewScores // fewer than `minReveals` score commitments or reveals
    }

    enum SlashReason {
        HarmfulCohort,
        NotRevealed,
        NotPublished
    }

    /// @notice Fixed when the task is proposed.
    struct TaskParams {
        bytes32 specHash; // keccak256 of the task file
        address aggregator;
        uint128 pool; // rewards, paid in by the operator at proposal
        uint128 hospitalBond;
        uint128 voterBond;
        uint128 aggregatorBond;
        uint16 rounds; // training rounds, >= 1
        uint16 cohorts; // per training round, 1 to 64
        uint16 minCohortSize; // >= 1
        uint16 minHospitals;
        uint16 maxHospitals; // <= 256
        uint16 minVoters;
        uint16 maxVoters; // <= 256; and no more than one transaction can settle (`TaskRules`)
        uint16 seats; // expected committee size, <= maxVoters
        uint16 minReveals; // >= 1, <= seats
        uint16 statisticsBlobs; // blobs per hospital in round 0, 1 to 128
        uint16 updateBlobs; // blobs per hospital in a training round, 1 to 128
        uint32 rowsPerWeight; // weight = clamp(ceil(rows / rowsPerWeight), 1, maxWeight)
        uint32 maxWeight;
        int64 acceptFloor; // a cohort whose median score is at least this is accepted
        int64 harmfulBelow; // a cohort whose median score is below this is slashed; <= acceptFloor
        uint64 toleranceAbs; // a voter is paid if |score - median| <= toleranceAbs + |median| * toleranceBps / 10,000
        uint16 toleranceBps;
        uint16 hospitalShareBps; // the three shares sum to 10,000
        uint16 voterShareBps;
        uint16 aggregatorShareBps;
        uint16 harmfulSlashBps; // of the bond, per event
        uint16 notRevealedSlashBps;
        uint16 notPublishedSlashBps;
        uint32 joinWindow;
        uint32 commitWindow;
        uint32 uploadWindow;
        uint32 publishWindow;
        uint32 scoreWindow;
        uint32 revealWindow;
    }

    struct TaskState {
        address operator;
        Phase phase;
        uint16 round; // current round
        uint64 deadline; // when anyone may `tick`; 0 in Forming and Drawing, which wait for the beacon only
        uint128 poolLeft;
        bool aggregatorJoined;
        uint256 activeHospitals; // bit map: joined, with bond left, not absent
        uint256 activeVoters; // bit map
    }

    struct Hospital {
        address node;
        uint32 weight;
        uint128 bond; // what is left of it
    }

    struct Voter {
        address node;
        uint128 bond; // what is left of it
        bytes32 keyHash; // keccak256 of the G2 key, as registered when joining
    }

    struct RoundState {
        Outcome outcome;
        VoidReason voidReason;
        uint16 cohorts; // cohorts dealt
        uint256 beaconRequest; // of the wait in progress (Forming, Drawing)
        bytes32 cohortSeed;
        bytes32 seatSeed;
        uint256 members; // hospitals of the round: bit map
        uint256 committed; // of these, who committed
        uint256 viableCohorts; // bit map over cohorts: enough commitments (from Uploading on), enough survivors (from Publishing on)
        uint256 survivors; // hospitals in the sums: bit map, fixed once
        uint256 summedCohorts; // bit map over cohorts: every blob's expected hash is known
        uint256 publishedCohorts; // bit map over cohorts
        uint256 seated; // voters: bit map
        uint256 stoodDown; // voters: bit map
        uint256 revealed; // voters: bit map
        uint256 seatWeight; // sum of the active voters' bonds when the seats were drawn
        uint256 acceptedCohorts; // bit map; in round 0 the one cohort, unjudged
        int64[] medians; // per cohort, 0 for one that was not judged
    }

    /// @notice A KZG commitment to one blob and its opening at the challenge (see `challenge`).
    struct Commitment {
        bytes point; // G1, compressed, 48 bytes
        bytes32 value; // y = f(z)
        bytes proof; // G1, compressed, 48 bytes
    }

    event TaskProposed(uint256 indexed taskId, address indexed operator, bytes32 specHash, uint256 pool);
    /// @param transportKey the hospital's Flower node key, uncompressed P-384 point as Flower registers it.
    event HospitalJoined(
        uint256 indexed taskId, address indexed hospital, uint256 index, uint32 weight, bytes transportKey
    );
    event VoterJoined(uint256 indexed taskId, address indexed voter, uint256 index);
    event AggregatorJoined(uint256 indexed taskId, address indexed aggregator);
    event PhaseStarted(uint256 indexed taskId, uint256 indexed round, Phase phase, uint64 deadline);
    event CohortsFormed(uint256 indexed taskId, uint256 indexed round, bytes32 seed, uint256[] members);
    /// @param points the commitments, G1 compressed, 48 bytes per blob: whoever adds them up reads them here.
    event UpdateCommitted(uint256 indexed taskId, uint256 indexed round, address indexed hospital, bytes points);
    event SurvivorsFixed(uint256 indexed taskId, uint256 indexed round, uint256 survivors);
    event CohortSummed(
        uint256 indexed taskId, uint256 indexed round, uint256 cohort, uint256 blob, bytes32 versionedHash
    );
    event CohortPublished(
        uint256 indexed taskId, uint256 indexed round, uint256 cohort, uint256 blob, bytes32 versionedHash
    );
    event SeatsDrawn(uint256 indexed taskId, uint256 indexed round, bytes32 seed, uint256 seatWeight);
    event ScoresCommitted(uint256 indexed taskId, uint256 indexed round, address indexed voter, bytes32 commitment);
    event VoterStoodDown(uint256 indexed taskId, uint256 indexed round, address indexed voter);
    event ScoresRevealed(uint256 indexed taskId, uint256 indexed round, address indexed voter, int64[] scores);
    event RoundSettled(uint256 indexed taskId, uint256 indexed round, int64[] medians, uint256 acceptedCohorts);
    event RoundVoided(uint256 indexed taskId, uint256 indexed round, VoidReason reason);
    event HospitalAbsent(uint256 indexed taskId, uint256 indexed round, address indexed hospital);
    event HospitalResumed(uint256 indexed taskId, address indexed hospital);
    event Rewarded(uint256 indexed taskId, uint256 indexed round, address indexed account, uint256 amount);
    event Slashed(
        uint256 indexed taskId, uint256 indexed round, address indexed account, uint256 amount, SlashReason reason
    );
    event TaskEnded(uint256 indexed taskId, uint256 refund);
    event BondReleased(uint256 indexed taskId, address indexed account, uint256 amount);
    event Claimed(address indexed account, uint256 amount);

    error ParamsInvalid(string field);
    error TaskUnknown(uint256 taskId);
    error WrongPhase(uint256 taskId, Phase actual, Phase wanted);
    error WrongRound(uint256 taskId, uint256 actual, uint256 given);
    error PhaseOver(uint256 taskId, uint64 deadline);
    error PhaseNotOver(uint256 taskId, uint64 deadline);
    error AlreadyJoined(uint256 taskId, address account);
    error TaskFull(uint256 taskId);
    error RowsAreZero();
    error VoterKeyMissing(address voter);
    error NotAMember(uint256 taskId, address account);
    error AlreadyCommitted(uint256 taskId, address account);
    error BlobCountWrong(uint256 given, uint256 wanted);
    error CommitmentMalformed(uint256 blob);
    error OpeningInvalid(address hospital, uint256 blob);
    error NotAggregator(address caller);
    error SurvivorsInvalid(uint256 survivors);
    error CohortUnknown(uint256 cohort);
    error PointsWrong(uint256 given, uint256 wanted);
    /// @notice The point is not the one that this hospital committed to.
    error CommitmentMismatch(address hospital, uint256 blob);
    error AlreadySummed(uint256 cohort, uint256 blob);
    error NotSummed(uint256 cohort, uint256 blob);
    error AlreadyPublished(uint256 cohort, uint256 blob);
    /// @notice The transaction's blob is not the sum of what the cohort's survivors committed to.
    error BlobMismatch(uint256 cohort, uint256 blob, bytes32 expected, bytes32 actual);
    error VoterKeyMismatch(address voter);
    error TicketInvalid(address voter);
    error SeatNotWon(address voter, uint256 draw, uint256 threshold);
    error AlreadyActed(uint256 taskId, address voter);
    error NotSeated(uint256 taskId, address voter);
    error RevealMismatch(address voter);
    error ScoreCountWrong(uint256 given, uint256 wanted);
    error NothingToClaim(address account);
    error NothingToRelease(uint256 taskId, address account);

    function propose(TaskParams calldata params) external returns (uint256 taskId);
    function joinAsAggregator(uint256 taskId) external;
    function joinAsHospital(uint256 taskId, uint256 rows, bytes calldata transportKey) external;
    function joinAsVoter(uint256 taskId) external;

    /// @notice Deals the cohorts with the beacon's value; anyone may call.
    function formCohorts(uint256 taskId, bytes calldata beaconProof) external;
    function commitUpdate(uint256 taskId, uint256 round, Commitment[] calldata commitments) external;
    /// @notice Says, once for all cohorts, whose updates are in the sums. The aggregator alone.
    function fixSurvivors(uint256 taskId, uint256 round, uint256 survivors) external;
    /// @notice Adds up the survivors' commitments of one blob by weight; anyone may call.
    /// @param points the survivors' commitments in order of index, G1 in EIP-2537 encoding, 128 bytes each.
    function sumCommitments(uint256 taskId, uint256 round, uint256 cohort, uint256 blob, bytes calldata points) external;
    /// @notice Compares the transaction's blobs `txBlob …` with the expected sums of a cohort's blobs `firstBlob …`.
    function publish(uint256 taskId, uint256 round, uint256 cohort, uint256 firstBlob, uint256 txBlob, uint256 count)
        external;
    /// @notice Fixes the seed that tickets sign; anyone may call.
    function drawSeats(uint256 taskId, bytes calldata beaconProof) external;
    /// @param publicKey the voter's G2 key, 256 bytes. @param ticket its G1 signature on `ticketMessage`, 128 bytes.
    function commitScores(
        uint256 taskId,
        uint256 round,
        bytes calldata publicKey,
        bytes calldata ticket,
        bytes32 commitment
    ) external;
    /// @notice A voter that drew no seat says so, to let the phase end early. Costs nothing but gas.
    function standDown(uint256 taskId, uint256 round) external;
    /// @param scores one per cohort dealt (0 for one that is not viable), in order.
    function revealScores(uint256 taskId, uint256 round, int64[] calldata scores, bytes32 salt) external;
    /// @notice Settles a round once everybody seated has revealed, or the deadline passed; anyone may call.
    function settle(uint256 taskId, uint256 round) external;
    /// @notice Moves a task on whose deadline has passed; anyone may call.
    function tick(uint256 taskId) external;
    /// @notice A hospital that was absent takes part again from the next round on.
    function resume(uint256 taskId) external;
    function claim() external returns (uint256 amount);
    /// @notice Unlocks an account's bonds of an ended task; anyone may call for anyone.
    function releaseBond(uint256 taskId, address account) external;

    function taskCount() external view returns (uint256);
    function params(uint256 taskId) external view returns (TaskParams memory);
    function state(uint256 taskId) external view returns (TaskState memory);
    function roundState(uint256 taskId, uint256 round) external view returns (RoundState memory);
    function hospitals(uint256 taskId) external view returns (Hospital[] memory);
    function voters(uint256 taskId) external view returns (Voter[] memory);
    /// @notice Members of a cohort: bit map over hospitals.
    function cohortMembers(uint256 taskId, uint256 round, uint256 cohort) external view returns (uint256);
    /// @notice Versioned hash of the sum that must be published; zero until summed.
    function expectedBlobHash(uint256 taskId, uint256 round, uint256 cohort, uint256 blob)
        external
        view
        returns (bytes32);
    function claimable(address account) external view returns (uint256);
    /// @notice Sum of all `claimable`.
    function totalClaimable() external view returns (uint256);
    /// @notice The point, a scalar, at which a hospital's commitment must be opened.
    function challenge(uint256 taskId, uint256 round, address hospital, uint256 blob, bytes32 versionedHash)
        external
        view
        returns (uint256);
    /// @notice What a ticket of this round signs.
    function ticketMessage(uint256 taskId, uint256 round) external view returns (bytes memory);
    function scoreCommitment(uint256 taskId, uint256 round, address voter, int64[] calldata scores, bytes32 salt)
        external
        view
        returns (bytes32);
}
