// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "./IStaking.sol";

/// @title Structs, events and errors of tasks.
/// @notice Round 0 is the statistics round: one cohort of all hospitals, weight 1 each, not judged, not paid. Rounds
///         1 … `rounds` train. Amounts are in the token's smallest unit, times in seconds, scores in millionths of the
///         task's metric. Hospitals and voters are numbered in the order of joining. Sets of them are bit maps: bit `i`
///         stands for index `i`.
interface ITaskTypes {
    /// @dev To add a phase: name it here, write its calls in `phases/`, and end it at its deadline in `Tasks.tick`.
    enum Phase {
        None, // no such task
        Joining, // hospitals, voters and the aggregator lock their bonds
        Forming, // the seed of the last seats, or the beacon's next value, assigns cohorts, once all shards are here
        Committing, // hospitals commit to the hashes of their points. A shard that is done waits for the other shards
        Uploading, // hospitals hand their updates to the aggregator, which then fixes the survivors
        Publishing, // the aggregator publishes each cohort's sum, or accuses a cohort whose sum is wrong
        Disputing, // the dispute over accused cohorts: evidence in two steps, then the aggregator names cheaters
        Drawing, // waits for the beacon's value that draws the seats
        Scoring, // seated voters commit to scores
        Revealing, // seated voters reveal their scores
        Disclosing, // the aggregator discloses which sums are sign-flipped, and proves that they are the sums
        Settling, // rewards and slashes, page by page, if one transaction cannot hold them
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
        NotPublished, // the aggregator let the publishing or disputing phase pass
        TooFewScores, // fewer than `minReveals` score commitments or reveals
        NotDisclosed, // the aggregator let the disclosing phase pass
        Mismatched, // most voters who revealed say that published data or named cheaters are wrong
        NoSums, // no cohort has a sum
        NoRandomness // the beacon gave no value; the task ends with this round
    }

    /// @notice Three faults of hospitals, two of voters, three of the aggregator. `Slashing` has their rates.
    enum SlashReason {
        HarmfulCohort,
        WithheldUpload,
        FalseUpload,
        NotRevealed,
        FailedDecoy,
        NotPublished,
        NotDisclosed,
        Mismatched
    }

    /// @notice The reason for an account's payout of a round.
    enum PayoutReason {
        NotSettled, // the round is not over, or never was
        Stranger, // the account has no role in the task
        Statistics, // round 0 is neither judged nor paid
        Void, // the round is void: nobody is paid
        NotPublished, // the aggregator let the upload, publishing or disputing phase pass
        NotDisclosed, // the aggregator let the disclosing phase pass
        Mismatched, // the aggregator published wrong data or named the wrong cheaters
        SatOut, // the hospital was assigned to no cohort
        NotCommitted,
        NotInSum, // its update is in no published sum, since its cohort fell below its minimum
        Withheld, // its update is not in its cohort's sum; the hospital and the aggregator both lose
        FalseUpload, // the hospital is a cheater: its cohort has no sum because of it
        Harmful, // its cohort's median is below `harmfulBelow`
        Rejected, // its cohort's median is below `acceptFloor`
        NoImprovement, // its cohort was accepted and improved nothing; in an arena less than `rankFloor`
        NoSeat,
        NotRevealed, // the voter held a seat
        Untested, // no decoy of the round could test voters: none is paid
        FailedDecoy, // the voter rated a decoy at least as high as its sum
        Far, // a score of the voter is too far from the median; or it says, in a minority, that nothing matches
        Late, // the aggregator fixed survivors, published or disclosed in a grace period
        Paid
    }

    /// @notice The terms of a task, fixed by the proposal. Only the pool can grow, while others join.
    struct TaskParams {
        bytes32 specHash; // keccak256 of the task file
        address aggregator; // in one storage slot with the next six, which publishing reads
        bool digests; // sums may be published by hash alone, for chains without blobs
        bool decoys; // sums of training rounds are published as they are or sign-flipped, and voters must tell
        bool masked; // updates are masked, so that the aggregator learns only a cohort's sum
        uint8 updateBits; // bits of an update's value, 2 to 40; used only with decoys
        uint8 laneBits; // bits of a scalar's lane, wide enough for published values; used only with decoys
        uint32 publishWindow; // as in `uploadWindow`, the aggregator may take half as long again, without its fee
        uint128 pool; // rewards, paid in by the operator at proposal and by `fund`
        uint128 hospitalBond;
        uint128 voterBond;
        uint128 aggregatorBond; // holds at least two slashes, each of at least two rounds' fees (`TaskRules`)
        uint128 tickBounty; // for a tick that ends a phase; all possible bounties take at most 1 % of the pool
        uint16 rounds; // training rounds, >= 1
        uint16 cohorts; // per training round, 1 to 64
        uint16 minCohortSize; // >= 1; >= 3 if masked
        uint16 minHospitals;
        uint16 maxHospitals; // <= 256
        uint16 minVoters;
        uint16 maxVoters; // <= 256
        uint16 seats; // expected committee size, <= maxVoters
        uint16 minReveals; // >= 1, <= seats
        uint16 statisticsBlobs; // blobs per hospital in round 0, 1 to 128
        uint16 updateBlobs; // blobs per hospital in a training round, 1 to 128
        uint8 shards; // tasks that train one model together, 1 to 16; `propose` makes them all
        uint32 rowsPerWeight; // weight = clamp(ceil(rows / rowsPerWeight), 1, maxWeight)
        uint32 maxWeight;
        int64 acceptFloor; // a cohort whose median score is at least this is accepted
        int64 harmfulBelow; // a cohort whose median score is below this is slashed; <= acceptFloor, and <= -10,000
        uint64 toleranceAbs; // a voter is paid if |score - median| <= toleranceAbs + |median| * toleranceBps / 10,000
        uint16 toleranceBps;
        uint64 decoyMargin; // a pair counts if the medians of sum and decoy differ by at least this; > 0
        uint16 hospitalShareBps; // the three shares sum to 10,000
        uint16 voterShareBps;
        uint16 aggregatorShareBps;
        uint16 rankDecayBps; // an arena: the claim of a rank, of the one before (`Ranks`); 0: weight times improvement
        uint16 harmfulSlashBps; // all slashes are shares of the bond, per event
        uint16 withheldSlashBps; // at most the aggregator's fee for an average hospital
        uint16 notRevealedSlashBps;
        uint16 failedDecoySlashBps;
        uint16 notPublishedSlashBps; // also for sums not disclosed, or mismatched
        uint32 joinWindow; // all windows together, at their longest in every round, take at most 180 days
        uint32 commitWindow;
        uint32 uploadWindow;
        uint32 scoreWindow;
        uint32 revealWindow;
        int64 rankFloor; // an arena: the least median that has a rank; > 0
    }

    struct TaskState {
        address operator;
        Phase phase;
        uint16 round; // current round
        uint64 deadline; // anyone may `tick` after it; 0 in Settling, and where no beacon, but other shards are awaited
        uint8 shard; // its number among the shards of a model, from 1; 0 if it trains a model alone
        uint128 poolLeft;
        bool aggregatorJoined;
        bool stopping; // the operator asked for no further round
        uint96 forfeited; // the part of `poolLeft` that played rounds did not pay; burnt in the end
        uint256 activeHospitals; // bit map: joined, with bond left, not absent
        uint256 activeVoters; // bit map
    }

    struct Hospital {
        address node;
        uint32 weight;
        uint128 bond; // the remainder
    }

    struct Voter {
        address node;
        uint128 bond; // the remainder
        bytes32 keyHash; // keccak256 of the G2 key, as registered when joining
    }

    struct RoundState {
        Outcome outcome;
        VoidReason voidReason;
        uint16 cohorts; // number of cohorts
        uint256 beaconRequest; // of Forming or Drawing; 0 in Forming without a request
        bytes32 cohortSeed;
        bytes32 seatSeed;
        uint256 members; // hospitals of the round: bit map
        uint256 committed; // members that committed
        uint256 viableCohorts; // bit map over cohorts: enough commitments, and from Publishing on enough survivors
        uint256 survivors; // hospitals in the sums: bit map, fixed once
        uint256 summedCohorts; // bit map over cohorts: every blob's expected hash is known
        uint256 publishedCohorts; // bit map over cohorts
        uint256 droppedCohorts; // bit map over cohorts: dropped after their survivors were fixed
        uint256 accused; // bit map over hospitals: those that committed in accused cohorts
        uint256 named; // bit map over hospitals: cheaters that the aggregator named
        uint256 guilty; // the named hospitals, once the committee agreed
        uint256 flippedCohorts; // bit map over cohorts whose sum was published sign-flipped; known once disclosed
        uint256 seated; // voters: bit map
        uint256 stoodDown; // voters: bit map
        uint256 revealed; // voters: bit map
        uint256 mismatched; // voters that say that the published data do not match
        uint256 seatWeight; // sum of the active voters' bonds when the seats were drawn
        uint256 acceptedCohorts; // bit map: they move the model; in an arena the best; in round 0 the one cohort, unjudged
        uint256 budget; // the most that the round pays, once it is concluded
        bool late; // the aggregator acted in a grace period
        int64[] medians; // per cohort, 0 for one that was not judged
    }

    /// @notice An account's payout of a round: `reward` is `base` times `part` of `whole`, rounded down.
    struct Payout {
        IStaking.Role role; // meaningless for a stranger
        PayoutReason reason;
        uint256 base; // the amount that its role shares
        uint256 part; // its claim: weight times the cohort's median, or its rank's; one seat; or the survivors' weight
        uint256 whole; // all claims: of hospitals, seats taken, or weight committed
        uint256 reward;
        uint256 slash; // burnt from its bond
    }

    /// @notice A hospital's commitments of a round: hashes of points, which are shown once all commitments are fixed.
    struct Update {
        bytes32[] pointHashes; // one per blob (see `pointHash`)
        bytes shareBundle; // of a masked task: encrypted secret shares for the cohort (docs/secure-aggregation.md)
        bytes32 base; // SHA-256 of the model that the hospital trained from; in round 0 of the first one
    }

    /// @notice An update that another account sends, with the hospital's signature on `commitmentDigest`. The
    ///         cohort needs no signature: the chain assigned it.
    struct SignedUpdate {
        address hospital;
        uint256 cohort; // the hospital's
        bytes32[] pointHashes; // as in `Update`
        bytes32 shareBundle; // keccak256 of the secret shares, which the aggregator has; 0 if the task is not masked
        bytes32 base; // as in `Update`
        bytes32 r; // the signature in its compact form (EIP-2098)
        bytes32 vs;
    }

    /// @notice All commitments of a cohort to one blob. The chain keeps one hash of them (`RunningHash`), so a sum needs
    ///         those of hospitals that are no survivors as well. Their points stay hidden.
    struct Commitments {
        bytes order; // indices of all hospitals of the cohort that committed, one byte each, in the order in which
        // the chain took their commitments
        bytes32[] others; // point hashes of those that are no survivors, in that order
        bytes points; // the survivors' in that order, G1 in EIP-2537 encoding, 128 bytes each
    }

    /// @notice The disclosure of a published blob of a decoy round.
    struct Disclosed {
        uint256 first; // sums of the survivors' weighted blinders, which the published blob leaves out
        uint256 second;
        Commitments commitments; // of the cohort to this blob
    }

    event TaskProposed(uint256 indexed taskId, address indexed operator, bytes32 specHash, uint256 pool);
    /// @param pool after the amount is added.
    event TaskFunded(uint256 indexed taskId, address indexed operator, uint256 amount, uint256 pool);
    /// @param transportKey the hospital's Flower node key: a point of P-256, both coordinates in 64 bytes.
    /// @param encryptionKey X25519 key (RFC 7748) to which its cohort encrypts; 0 if the task is not masked.
    event HospitalJoined(
        uint256 indexed taskId,
        address indexed hospital,
        uint256 index,
        uint32 weight,
        bytes transportKey,
        bytes32 encryptionKey
    );
    event VoterJoined(uint256 indexed taskId, address indexed voter, uint256 index);
    event AggregatorJoined(uint256 indexed taskId, address indexed aggregator);
    event PhaseStarted(uint256 indexed taskId, uint256 indexed round, Phase phase, uint64 deadline);
    event CohortsFormed(uint256 indexed taskId, uint256 indexed round, bytes32 seed, uint256[] members);
    /// @param pointHashes the commitments, one per blob (see `pointHash`).
    /// @param shareBundle keccak256 of the hospital's secret shares; 0 if it has none.
    /// @param base as the hospital states it. The contract knows no model: readers derive it and compare.
    event UpdateCommitted(
        uint256 indexed taskId,
        uint256 indexed round,
        address indexed hospital,
        bytes32[] pointHashes,
        bytes32 shareBundle,
        bytes32 base
    );
    /// @notice Secret shares from the hospital's own transaction: the aggregator may not have them.
    event SharesPublished(uint256 indexed taskId, uint256 indexed round, address indexed hospital, bytes shareBundle);
    event SurvivorsFixed(uint256 indexed taskId, uint256 indexed round, uint256 survivors);
    /// @notice The points of a cohort's survivors for one blob, so that everybody can add them up.
    /// @param hospitals the survivors' indices, one byte each, in the order of their commitments.
    /// @param points theirs in that order, G1 compressed, 48 bytes each.
    event PointsShown(
        uint256 indexed taskId, uint256 indexed round, uint256 cohort, uint256 blob, bytes hospitals, bytes points
    );
    event CohortSummed(
        uint256 indexed taskId, uint256 indexed round, uint256 cohort, uint256 blob, bytes32 versionedHash
    );
    /// @param seedCommitment commits to the seed that says which cohorts' sums are sign-flipped.
    /// @param negatedDelta keccak256 of the commitments to the round's negated delta, G1 in EIP-2537 encoding, 128
    ///        bytes per blob. The public record gives the negated delta, so everybody can check it.
    event DecoysSet(uint256 indexed taskId, uint256 indexed round, bytes32 seedCommitment, bytes32 negatedDelta);
    event CohortDisclosed(uint256 indexed taskId, uint256 indexed round, uint256 cohort, bool isFlipped);
    /// @notice The cohort has no sum: too few hospitals helped to unmask it, or it does not match their commitments.
    event CohortDropped(uint256 indexed taskId, uint256 indexed round, uint256 cohort);
    /// @notice A dispute begins: the survivors' uploads do not add up to their commitments. Survivors must
    ///         `submitEvidence`. Every hospital of the cohort that sent secret shares may be named.
    /// @param accusation hash of all that was fixed before the dispute (docs/secure-aggregation.md).
    /// @param evidence keccak256 of a file in the artifact store that judges need beside the chain.
    event CohortAccused(
        uint256 indexed taskId, uint256 indexed round, uint256 cohort, bytes32 accusation, bytes32 evidence
    );
    /// @param step 0 or 1. In each step the first evidence of a hospital counts.
    event EvidenceSubmitted(
        uint256 indexed taskId, uint256 indexed round, address indexed hospital, uint256 step, bytes evidence
    );
    event CheatersNamed(uint256 indexed taskId, uint256 indexed round, uint256 hospitals);
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
    /// @notice The pool paid for a tick.
    event BountyPaid(uint256 indexed taskId, uint256 indexed round, address indexed account, uint256 amount);
    /// @notice No task can be proposed any more.
    event ProposalsEnded(address indexed guardian);
    /// @param round the current round, which is the last. After the statistics round one more is played.
    event TaskStopped(uint256 indexed taskId, uint256 indexed round);
    /// @param refund to the operator, for rounds that were not played.
    /// @param burnt the amount that played rounds did not pay.
    event TaskEnded(uint256 indexed taskId, uint256 refund, uint256 burnt);
    event BondReleased(uint256 indexed taskId, address indexed account, uint256 amount);
    event Claimed(address indexed account, uint256 amount);

    /// @notice This address only holds code for `Tasks`. Call `Tasks`.
    error OnlyDelegated();
    /// @notice The guardian stopped proposals for good. Use a newer deployment.
    error ProposalsStopped();
    error NotGuardian(address caller);
    error ParamsInvalid(string field);
    error NotOperator(address caller);
    error AmountIsZero();
    error AlreadyStopped(uint256 taskId);
    error TaskUnknown(uint256 taskId);
    error WrongPhase(uint256 taskId, Phase actual, Phase wanted);
    error WrongRound(uint256 taskId, uint256 actual, uint256 given);
    /// @notice The dispute is in another step (`submitEvidence`).
    error WrongStep(uint256 taskId, uint256 actual, uint256 given);
    error PhaseOver(uint256 taskId, uint64 deadline);
    error PhaseNotOver(uint256 taskId, uint64 deadline);
    error AlreadyJoined(uint256 taskId, address account);
    error TaskFull(uint256 taskId);
    /// @notice Another shard is still in an earlier round, whose sums the model of this one needs; or it still takes
    ///         commitments to this round. Wait.
    error ShardBehind(uint256 taskId, uint256 round, uint256 wanted);
    error RowsAreZero();
    /// @notice The key is not a point of P-256, or did not sign this account's `transportMessage`.
    error TransportKeyInvalid(address hospital);
    /// @notice Another hospital of the task has this key. Make a new one.
    error TransportKeyTaken(address hospital);
    /// @notice A hospital needs an encryption key to join a masked task.
    error EncryptionKeyMissing(address hospital);
    error VoterKeyMissing(address voter);
    error NotAMember(uint256 taskId, address account);
    error AlreadyCommitted(uint256 taskId, address account);
    error BlobUnknown(uint256 blob, uint256 blobs);
    /// @notice The hospital's point is the point at infinity, which commits to a blob of zeros.
    error CommitmentMalformed(address hospital, uint256 blob);
    /// @notice The hospital did not sign this task, round, point hashes, `shareBundle` and `base`, or the signature is
    ///         not canonical.
    error SignatureInvalid(address hospital);
    error NotAggregator(address caller);
    error SurvivorsInvalid(uint256 survivors);
    error CohortUnknown(uint256 cohort);
    /// @notice Name at least one hospital, and only those that committed in accused cohorts.
    error CheatersInvalid(uint256 hospitals);
    /// @notice Name the cohort that `CohortsFormed` assigned; in round 0 it is 0.
    error NotInCohort(address hospital, uint256 cohort);
    /// @notice Points, or their hashes, or the `order` or `others` beside them, have the wrong length, in bytes.
    error PointsWrong(uint256 given, uint256 wanted);
    /// @notice These are not the cohort's commitments to the blob in the chain's order: one is missing, wrong, doubled
    ///         or elsewhere. Read `UpdateCommitted` again.
    error CommitmentMismatch(uint256 cohort, uint256 blob);
    error AlreadySummed(uint256 cohort, uint256 blob);
    error NotSummed(uint256 cohort, uint256 blob);
    error AlreadyPublished(uint256 cohort, uint256 blob);
    /// @notice The published blob is not the sum of the survivors' commitments.
    error BlobMismatch(uint256 cohort, uint256 blob, bytes32 expected, bytes32 actual);
    /// @notice The transaction has no blob at this index.
    error BlobMissing(uint256 cohort, uint256 blob);
    /// @notice Only cohorts of masked tasks can be dropped. Leave hospitals out of `fixSurvivors` instead.
    error NotMasked(uint256 taskId);
    /// @notice The task's sums are published as blobs. Call `publish`.
    error NotByDigest(uint256 taskId);
    /// @notice A decoy round adds sums up in `discloseDecoys`.
    error DecoyRound(uint256 taskId, uint256 round);
    error NotADecoyRound(uint256 taskId, uint256 round);
    error DecoysAlreadySet(uint256 taskId, uint256 round);
    error DecoysNotSet(uint256 taskId, uint256 round);
    /// @notice The aggregator committed to another seed or negated delta before it published.
    error DecoysMismatch(uint256 taskId, uint256 round);
    /// @notice Some cohorts are not disclosed. Both fields are bit maps over cohorts.
    error CohortsNotDisclosed(uint256 disclosed, uint256 wanted);
    error VoterKeyMismatch(address voter);
    error TicketInvalid(address voter);
    error SeatNotWon(address voter, uint256 draw, uint256 threshold);
    error AlreadyActed(uint256 taskId, address voter);
    error NotSeated(uint256 taskId, address voter);
    error RevealMismatch(address voter);
    error ScoreCountWrong(uint256 given, uint256 wanted);
    error NothingToClaim(address account);
    error NothingToRelease(uint256 taskId, address account);
}
