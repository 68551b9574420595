// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {G1} from "../libraries/Bls12381.sol";
import {IStaking} from "./IStaking.sol";

/// @title What tasks are made of: states, events, errors.
/// @notice Round 0 is the statistics round (one cohort of everybody, weight 1 each, not judged, not paid);
///         rounds 1 … `rounds` train. Amounts in the token's smallest unit, times in seconds, scores in
///         millionths of the task's metric. Hospitals and voters are known by their index of joining,
///         and sets of them are bit maps: bit `i` stands for index `i`.
interface ITaskTypes {
    enum Phase {
        None, // no such task
        Joining, // hospitals, voters and the aggregator lock their bonds
        Forming, // the cohorts are dealt by the value that drew the last seats, or by one that is waited for
        Committing, // hospitals post commitments with openings
        Uploading, // hospitals hand their updates to the aggregator, which then fixes the survivors
        Publishing, // the aggregator publishes each cohort's sum, or says that one does not hold
        Blaming, // only if so: hospitals testify in two steps, then the aggregator names whose doing it is
        Drawing, // waits for the beacon's value that draws the seats
        Scoring, // seated voters commit to scores
        Revealing, // and reveal them
        Opening, // the aggregator shows which sums were turned, and that they are the sums
        Settling, // only where one transaction cannot hold it: the round's rewards and slashes, page by page
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
        NotPublished, // the aggregator let the publishing or blaming phase pass
        TooFewScores, // fewer than `minReveals` score commitments or reveals
        NotOpened, // the aggregator let the opening phase pass
        Mismatched, // most of those who revealed say that what is published, or who is named, is not what it should be
        NoSums, // no cohort has a sum
        NoRandomness // the beacon gave no value; the task ends with this round
    }

    /// @notice By role: three faults of hospitals, two of voters, three of the aggregator.
    enum SlashReason {
        HarmfulCohort,
        WithheldUpload,
        FalseUpload,
        NotRevealed,
        FailedCanary,
        NotPublished,
        NotOpened,
        Mismatched
    }

    /// @notice Why an account got what it got in a round.
    enum PayoutReason {
        NotSettled, // the round is not over, or never was
        Stranger, // the account has no role in the task
        Statistics, // round 0 is neither judged nor paid
        Void, // the round is void: nobody is paid
        NotPublished, // the aggregator let the upload, publishing or blaming phase pass
        NotOpened, // it let the opening phase pass
        Mismatched, // what it published or said of hospitals is not what it should be
        SatOut, // the hospital was not dealt into a cohort
        NotCommitted,
        NotInSum, // its update is in no published sum, since its cohort fell below its minimum
        Withheld, // its update is not in its cohort's sum: whoever of the two kept it, both lose
        FalseUpload, // its cohort has no sum because of what it uploaded, said or kept to itself
        Harmful, // its cohort's median is below `harmfulBelow`
        Rejected, // its cohort's median is below `acceptFloor`
        NoImprovement, // its cohort was accepted and improved nothing
        NoSeat,
        NotRevealed, // the voter held a seat
        Untested, // no canary of the round could tell who looked: no voter is paid
        FailedCanary, // the voter rated a canary as high as the sum it was made of
        Far, // a score of the voter is too far from the median; or it says, alone, that nothing matches
        Late, // the aggregator fixed survivors, published or opened in a grace period
        Paid
    }

    /// @notice Fixed when the task is proposed; but the pool can grow while others join.
    struct TaskParams {
        bytes32 specHash; // keccak256 of the task file
        address aggregator; // in one storage slot with the next six, which publishing reads
        bool digests; // sums may be published by their hash alone: for chains without blobs
        bool canaries; // training rounds' sums are published as they are or turned, and voters must tell
        bool masked; // updates travel masked, and the aggregator learns a cohort's sum alone
        uint8 updateBits; // of an update's values, 2 to 40; of use with canaries only
        uint8 laneBits; // of a lane of a scalar, wide enough for what is published; of use with canaries only
        uint32 publishWindow; // of the aggregator, which may take half as long again without its fee; as `uploadWindow`
        uint128 pool; // rewards, paid in by the operator at proposal and by `fund`
        uint128 hospitalBond;
        uint128 voterBond;
        uint128 aggregatorBond; // holds at least two slashes, each of at least two rounds' fees (`TaskRules`)
        uint128 tickBounty; // for a tick that moves the task on; all possible ones take at most 1 % of the pool
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
        uint32 rowsPerWeight; // weight = clamp(ceil(rows / rowsPerWeight), 1, maxWeight)
        uint32 maxWeight;
        int64 acceptFloor; // a cohort whose median score is at least this is accepted
        int64 harmfulBelow; // a cohort whose median score is below this is slashed; <= acceptFloor, and <= -10,000
        uint64 toleranceAbs; // a voter is paid if |score - median| <= toleranceAbs + |median| * toleranceBps / 10,000
        uint16 toleranceBps;
        uint64 canaryMargin; // a pair counts if the medians of sum and canary part by at least this; > 0 with canaries
        uint16 hospitalShareBps; // the three shares sum to 10,000
        uint16 voterShareBps;
        uint16 aggregatorShareBps;
        uint16 harmfulSlashBps; // of the bond, per event
        uint16 withheldSlashBps; // at most what an average hospital's upload is worth to the aggregator
        uint16 notRevealedSlashBps;
        uint16 failedCanarySlashBps;
        uint16 notPublishedSlashBps; // also for sums not opened, or mismatched
        uint32 joinWindow; // all windows together, at their longest in every round, take at most 180 days
        uint32 commitWindow;
        uint32 uploadWindow;
        uint32 scoreWindow;
        uint32 revealWindow;
    }

    struct TaskState {
        address operator;
        Phase phase;
        uint16 round; // current round
        uint64 deadline; // when anyone may `tick`; 0 in Settling, and in a Forming that waits for nothing
        uint128 poolLeft;
        bool aggregatorJoined;
        bool stopping; // the operator asked for no further round
        uint96 forfeited; // of what is left of the pool: what played rounds did not pay, to be burnt in the end
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
        uint256 beaconRequest; // of the wait in progress (Forming, Drawing); 0 in a Forming that waits for nothing
        bytes32 cohortSeed;
        bytes32 seatSeed;
        uint256 members; // hospitals of the round: bit map
        uint256 committed; // of these, who committed
        uint256 viableCohorts; // bit map over cohorts: enough commitments (from Uploading on), enough survivors (from Publishing on)
        uint256 survivors; // hospitals in the sums: bit map, fixed once
        uint256 summedCohorts; // bit map over cohorts: every blob's expected hash is known
        uint256 publishedCohorts; // bit map over cohorts
        uint256 droppedCohorts; // bit map over cohorts: not viable any more, though their survivors were fixed
        uint256 accused; // who committed in those of these that the aggregator accused: bit map over hospitals
        uint256 named; // of these, whose doing it is by the aggregator: bit map
        uint256 guilty; // the same once the committee agreed: bit map
        uint256 turnedCohorts; // bit map over cohorts whose sum was published turned; known once opened
        uint256 seated; // voters: bit map
        uint256 stoodDown; // voters: bit map
        uint256 revealed; // voters: bit map
        uint256 mismatched; // of these, who say that what is published does not match
        uint256 seatWeight; // sum of the active voters' bonds when the seats were drawn
        uint256 acceptedCohorts; // bit map; in round 0 the one cohort, unjudged
        uint256 budget; // what the round may pay, or could have paid, once that is known
        bool late; // the aggregator acted in a grace period
        int64[] medians; // per cohort, 0 for one that was not judged
    }

    /// @notice An account's round: `reward` is `base` times `part` of `whole`, rounded down.
    struct Payout {
        IStaking.Role role; // says nothing for a stranger
        PayoutReason reason;
        uint256 base; // what its role shares in this round
        uint256 part; // its claim: weight times the cohort's median, one seat, or the survivors' weight
        uint256 whole; // all claims: of hospitals, seats taken, or weight committed
        uint256 reward;
        uint256 slash; // burnt of its bond
    }

    /// @notice A hospital's commitments of a round, and one opening for all of them (see `challenge`).
    struct Update {
        bytes points; // one G1 point per blob in EIP-2537 encoding, 128 bytes each
        bytes32 value; // what the combined polynomial takes at the challenge
        bytes proof; // G1, compressed, 48 bytes
        bytes dealing; // of a masked task: shares of what removes the masks, sealed for the cohort (docs/secure-aggregation.md)
    }

    /// @notice An update that another than its hospital hands in, with the hospital's signature on `commitmentDigest`.
    ///         What is not signed, value and proof, cannot be other than they are: the points and the challenge fix both.
    struct SignedUpdate {
        address hospital;
        bytes points; // as in `Update`
        bytes32 value; // as in `Update`
        G1 proof; // EIP-2537: what is checked in one go for many is added up, not handed to precompile 0x0A
        bytes32 dealing; // keccak256 of the dealing, whose bytes the aggregator has; 0 where the task is not masked
        bytes32 r; // the signature in its compact form (EIP-2098)
        bytes32 vs;
    }

    /// @notice What opens a published blob of a canary round.
    struct Opened {
        uint256 first; // sums of the survivors' weighted blinders: what the blob's last two scalars would have been
        uint256 second;
        bytes points; // the survivors' commitments in order of index, G1 in EIP-2537 encoding, 128 bytes each
    }

    event TaskProposed(uint256 indexed taskId, address indexed operator, bytes32 specHash, uint256 pool);
    /// @param pool with the amount.
    event TaskFunded(uint256 indexed taskId, address indexed operator, uint256 amount, uint256 pool);
    /// @param transportKey the hospital's Flower node key, a point of P-256, its coordinates in 64 bytes.
    /// @param sealingKey X25519 (RFC 7748): what others of its cohort seal for it. 0 where the task is not masked.
    event HospitalJoined(
        uint256 indexed taskId,
        address indexed hospital,
        uint256 index,
        uint32 weight,
        bytes transportKey,
        bytes32 sealingKey
    );
    event VoterJoined(uint256 indexed taskId, address indexed voter, uint256 index);
    event AggregatorJoined(uint256 indexed taskId, address indexed aggregator);
    event PhaseStarted(uint256 indexed taskId, uint256 indexed round, Phase phase, uint64 deadline);
    event CohortsFormed(uint256 indexed taskId, uint256 indexed round, bytes32 seed, uint256[] members);
    /// @param points the commitments, G1 compressed, 48 bytes per blob: whoever adds them up reads them here.
    /// @param dealing keccak256 of the hospital's dealing; 0 where it dealt nothing.
    event UpdateCommitted(
        uint256 indexed taskId, uint256 indexed round, address indexed hospital, bytes points, bytes32 dealing
    );
    /// @notice The bytes of a dealing that came with the hospital's own transaction: the aggregator may not have them.
    event Dealt(uint256 indexed taskId, uint256 indexed round, address indexed hospital, bytes dealing);
    event SurvivorsFixed(uint256 indexed taskId, uint256 indexed round, uint256 survivors);
    event CohortSummed(
        uint256 indexed taskId, uint256 indexed round, uint256 cohort, uint256 blob, bytes32 versionedHash
    );
    /// @param seedCommitment of the seed that says which cohorts' sums are turned.
    /// @param retreat keccak256 of the commitments to how far the round's canaries go back, G1 in EIP-2537 encoding, 128
    ///        bytes per blob. By the public record alone: everybody can tell what it must be.
    event CanariesSet(uint256 indexed taskId, uint256 indexed round, bytes32 seedCommitment, bytes32 retreat);
    event CohortOpened(uint256 indexed taskId, uint256 indexed round, uint256 cohort, bool isTurned);
    /// @notice Its hospitals' updates are in no sum: too few of them helped to unmask it, or it is not what they committed to.
    event CohortDropped(uint256 indexed taskId, uint256 indexed round, uint256 cohort);
    /// @notice Its survivors' uploads do not add up to what they committed to: they must `testify`. Whoever dealt may be named.
    /// @param accusation what testimony is about: a hash of all that was fixed before (docs/secure-aggregation.md).
    /// @param evidence keccak256 of a file in the artifact store: what judges need beyond the chain.
    event CohortAccused(
        uint256 indexed taskId, uint256 indexed round, uint256 cohort, bytes32 accusation, bytes32 evidence
    );
    /// @param step 0 or 1. The first that a hospital says in a step counts.
    event Testified(
        uint256 indexed taskId, uint256 indexed round, address indexed hospital, uint256 step, bytes testimony
    );
    event CulpritsNamed(uint256 indexed taskId, uint256 indexed round, uint256 hospitals);
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
    /// @notice For a tick, from the pool.
    event BountyPaid(uint256 indexed taskId, uint256 indexed round, address indexed account, uint256 amount);
    /// @notice No task can be proposed any more.
    event ProposalsEnded(address indexed guardian);
    /// @param round the current one. It goes on to its end; if it is the statistics round, so does the first after it.
    event TaskStopped(uint256 indexed taskId, uint256 indexed round);
    /// @param refund of rounds that were not played, to the operator.
    /// @param burnt of rounds that were played: what they did not pay.
    event TaskEnded(uint256 indexed taskId, uint256 refund, uint256 burnt);
    event BondReleased(uint256 indexed taskId, address indexed account, uint256 amount);
    event Claimed(address indexed account, uint256 amount);

    /// @notice This address holds code for `Tasks`, and nothing else: call `Tasks`.
    error OnlyDelegated();
    /// @notice The guardian stopped proposals for good: use a newer deployment.
    error ProposalsStopped();
    error NotGuardian(address caller);
    error ParamsInvalid(string field);
    error NotOperator(address caller);
    error AmountIsZero();
    error AlreadyStopped(uint256 taskId);
    error TaskUnknown(uint256 taskId);
    error WrongPhase(uint256 taskId, Phase actual, Phase wanted);
    error WrongRound(uint256 taskId, uint256 actual, uint256 given);
    /// @notice Of testimony in Blaming.
    error WrongStep(uint256 taskId, uint256 actual, uint256 given);
    error PhaseOver(uint256 taskId, uint64 deadline);
    error PhaseNotOver(uint256 taskId, uint64 deadline);
    error AlreadyJoined(uint256 taskId, address account);
    error TaskFull(uint256 taskId);
    error RowsAreZero();
    /// @notice Not a point of P-256 with this account's signature by it (`transportMessage`).
    error TransportKeyInvalid(address hospital);
    /// @notice Another hospital of the task has it: make a new one.
    error TransportKeyTaken(address hospital);
    /// @notice A masked task's hospitals need one.
    error SealingKeyMissing(address hospital);
    error VoterKeyMissing(address voter);
    error NotAMember(uint256 taskId, address account);
    error AlreadyCommitted(uint256 taskId, address account);
    error BlobUnknown(uint256 blob, uint256 blobs);
    error CommitmentMalformed(address hospital, uint256 blob);
    error OpeningInvalid(address hospital);
    /// @notice Not this hospital's signature on this task, round, points and dealing; or one in its other, malleable form.
    error SignatureInvalid(address hospital);
    error NotAggregator(address caller);
    error SurvivorsInvalid(uint256 survivors);
    error CohortUnknown(uint256 cohort);
    /// @notice Not some of those who committed in accused cohorts.
    error CulpritsInvalid(uint256 hospitals);
    /// @notice In bytes.
    error PointsWrong(uint256 given, uint256 wanted);
    /// @notice The point is not the one that this hospital committed to.
    error CommitmentMismatch(address hospital, uint256 blob);
    error AlreadySummed(uint256 cohort, uint256 blob);
    error NotSummed(uint256 cohort, uint256 blob);
    error AlreadyPublished(uint256 cohort, uint256 blob);
    /// @notice The transaction's blob is not the sum of what the cohort's survivors committed to.
    error BlobMismatch(uint256 cohort, uint256 blob, bytes32 expected, bytes32 actual);
    /// @notice There is no blob in this place of the transaction.
    error BlobMissing(uint256 cohort, uint256 blob);
    /// @notice The aggregator has every upload in the clear, and says before it publishes whose are in the sums.
    error NotMasked(uint256 taskId);
    /// @notice The task's sums are published as blobs.
    error NotByDigest(uint256 taskId);
    /// @notice In a canary round sums are added up when they are opened, not before; in others there are no canaries.
    error CanaryRound(uint256 taskId, uint256 round);
    error NotACanaryRound(uint256 taskId, uint256 round);
    error CanariesAlreadySet(uint256 taskId, uint256 round);
    error CanariesNotSet(uint256 taskId, uint256 round);
    /// @notice Seed and retreat are not those that the aggregator committed to before it published.
    error CanariesMismatch(uint256 taskId, uint256 round);
    /// @notice Bit maps over cohorts.
    error CohortsNotOpened(uint256 opened, uint256 wanted);
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
