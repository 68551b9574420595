// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Pool} from "../types/Pool.sol";

/// @title Stakes of nodes, delegation, rewards, and voters' keys. No other contract holds stake.
/// @notice A node is an owner's address in a role. Owner and delegators hold shares of its one pool, so gains and
///         losses reach them pro rata. Amounts are in the token's smallest unit, times in seconds since the epoch.
///
///         Locked stake answers for behaviour in tasks. The whole pool answers for its bonds, unbonding stake included,
///         but new bonds only lock stake that is not unbonding. So a node that goes on joining tasks holds no delegator
///         back: it can withdraw once the unbonding period is over and either the node has locked a bond since, or the
///         tasks have ended that ran when it started to unbond.
///
///         Rewards do not compound. They vest evenly, second by second: commission to the owner, and the rest to shares
///         that are not unbonding. Vested rewards wait to be claimed.
interface IStaking {
    enum Role {
        Hospital,
        Voter,
        Aggregator
    }

    /// @notice A pool's stake. `active` and `unbonding` add up to all of it. New bonds can lock `free`.
    struct Stake {
        uint128 active;
        uint128 free;
        uint128 locked;
        uint128 unbonding;
    }

    struct NodeId {
        address node;
        Role role;
    }

    struct Reward {
        address node;
        Role role;
        uint96 amount;
    }

    /// @notice Unbonding shares. They earn no rewards, and slashes still lower their worth until they leave.
    struct Request {
        address node;
        Role role;
        uint40 maturesAt;
        uint32 generation; // the pool's; a request of an earlier one is worthless
        uint112 shares;
    }

    /// @notice The account that gets the stake and the rewards of a node's owner, and an announced change of it.
    struct Withdrawal {
        address current;
        uint40 nextAt; // start of `next`; both are 0 if no change is announced
        address next;
    }

    // Totals in events are those after the change, so that anybody's part can be computed from events alone.

    event NodeRegistered(address indexed node, Role indexed role, uint256 commissionBps);
    event CommissionSet(address indexed node, Role indexed role, uint256 commissionBps, uint256 effectiveAt);
    /// @notice A change, if `effectiveAt` is later than now. Else the address counts, and no change is announced.
    event WithdrawalAddressSet(address indexed node, Role indexed role, address withdrawalAddress, uint256 effectiveAt);
    event Delegated(
        address indexed node,
        Role indexed role,
        address indexed delegator,
        uint256 amount,
        uint256 shares,
        uint256 totalAssets,
        uint256 totalShares
    );
    event UnbondingStarted(
        address indexed node,
        Role indexed role,
        address indexed delegator,
        uint256 requestId,
        uint256 shares,
        uint256 maturesAt,
        uint256 totalUnbondingShares
    );
    /// @notice A matured request left its pool: paid out, or delegated anew (then `Delegated` follows).
    event Unbonded(
        address indexed node,
        Role indexed role,
        address indexed delegator,
        uint256 requestId,
        uint256 shares,
        uint256 amount,
        uint256 totalAssets,
        uint256 totalShares
    );
    event StakeLocked(address indexed node, Role indexed role, uint256 amount, uint256 totalLocked);
    event StakeUnlocked(address indexed node, Role indexed role, uint256 amount, uint256 totalLocked);
    /// @param amount Burnt stake. Every share, unbonding ones too, lost amount / (amount + totalAssets) of its worth.
    /// @param forfeited Burnt unvested rewards.
    event StakeSlashed(
        address indexed node,
        Role indexed role,
        uint256 amount,
        uint256 forfeited,
        uint256 totalAssets,
        uint256 totalShares
    );
    /// @notice A slash took all. Shares of generations before `generation` are worthless.
    event PoolWiped(address indexed node, Role indexed role, uint256 generation);
    event RewardAdded(address indexed node, Role indexed role, uint256 amount, uint256 vestingEnd);
    /// @notice Money that the node's parts of finished models brought (`IModelShares`).
    event Given(address indexed node, Role indexed role, uint256 amount, uint256 vestingEnd);
    /// @param commission The owner's part of the vested rewards.
    /// @param indexX48 Earnings of one share since the node was registered, plus one. 48 bits are the fraction.
    event RewardsVested(address indexed node, Role indexed role, uint256 commission, uint256 indexX48);
    event Claimed(address indexed node, Role indexed role, address indexed delegator, uint256 amount);
    /// @param publicKey EIP-2537 encoding of the G2 key, 256 bytes.
    event VoterKeyRegistered(address indexed voter, bytes publicKey);
    /// @param root Merkle root over the held-out rows by which the voter judges.
    event HeldOutCommitted(address indexed voter, bytes32 root);

    error AmountIsZero();
    error AlreadyRegistered(address node, Role role);
    /// @notice The owner must `register` first.
    error NodeUnknown(address node, Role role);
    error CommissionTooHigh(uint256 commissionBps);
    /// @notice Slashes lowered the price of shares so far that no more can be counted. The node takes no more stake,
    ///         and its owner must register another. Stake can still leave.
    error PoolWornOut(uint256 assets, uint256 shares);
    error StakeInsufficient(address node, Role role, uint256 free, uint256 wanted);
    error LockedInsufficient(address node, Role role, uint256 locked, uint256 wanted);
    error SharesInsufficient(address node, Role role, uint256 shares, uint256 wanted);
    /// @notice The request does not exist, or is closed.
    error RequestUnknown(address delegator, uint256 requestId);
    error StillUnbonding(uint256 maturesAt);
    /// @notice The remaining stake would not cover the bonds of running tasks. Wait until they are released.
    error StillBacking(address node, Role role, uint256 locked, uint256 left);
    error NothingToClaim(address account);
    /// @notice Only the node's withdrawal address may call, or the node itself before it has one.
    error OnlyWithdrawalAddress(address node, Role role, address caller);
    /// @notice The address must not be zero, the node, the token, the staking contract or the task contract.
    error WithdrawalAddressInvalid(address withdrawalAddress);
    /// @notice The request is paid to `payee`, so the sender cannot redelegate it, nor withdraw it for another.
    error PaidElsewhere(uint256 requestId, address payee);
    error OnlyTasks(address caller);
    error OnlyModelShares(address caller);
    error OnlyDeployer(address caller);
    error AlreadyConnected(address tasks, address modelShares);
    /// @notice Vesting must take at least a second, and unbonding at least as long as vesting.
    error PeriodsInvalid(uint256 unbondingPeriod, uint256 vestingPeriod);
    /// @notice The token's supply must fit 96 bits.
    error SupplyTooLarge(uint256 supply);
    error VoterKeyMalformed(uint256 length);
    /// @notice The proof of possession is wrong, or the key is the identity or outside the subgroup.
    error ProofOfPossessionInvalid(address voter);
    /// @notice Another voter has or had this key. Make a new one.
    error VoterKeyTaken(address voter);
    /// @notice A node's owner must hold a tenth of the stake that its bonds lock (`Pools.OWN_BPS`), as long as they lock it:
    ///         an owner that locks others' stake risks its own.
    /// @param own the worth of the owner's shares after the call. At joining, unbonding shares do not count.
    error OwnStakeInsufficient(address node, Role role, uint256 own, uint256 wanted);

    // Owners.

    /// @notice Makes the sender a node in `role` for good, and stakes `amount` on it, which may be zero.
    /// @param commissionBps The owner's part of rewards, in hundredths of a percent, before shares get theirs.
    function register(Role role, uint256 commissionBps, uint256 amount) external;

    /// @notice Lowers the commission at once, and takes back a raise that is not yet in effect. Or announces a raise,
    ///         which takes effect after the unbonding period, so that delegators who disagree can unbond before.
    function setCommission(Role role, uint256 commissionBps) external;

    /// @notice Names the account that gets what this contract pays for the owner's own stake in a node: withdrawals, vested
    ///         rewards and commission. What is paid goes to the address at that time. Delegators' money, and the owner's
    ///         stake in other nodes, go to those who delegated.
    ///
    ///         The node sets the first one, which counts at once and for good. From then on only the withdrawal address
    ///         changes it, and a change takes effect after the unbonding period. Setting the present address takes back
    ///         an announced change.
    function setWithdrawalAddress(address node, Role role, address to) external;

    /// @notice `startUnbonding`, `withdraw` and `claim` for the owner's stake, called by its withdrawal address: a lost
    ///         key of the node locks nothing. `requestId` is the node's.
    function startUnbondingFor(address node, Role role, uint256 shares) external returns (uint256 requestId);
    function withdrawFor(address node, uint256 requestId) external returns (uint256 amount);
    function claimFor(address node, Role role) external returns (uint256 amount);

    // Delegators. Owners are delegators, too: their own stake is shares in the same pool.

    /// @notice Stakes `amount` on a node. Mints `amount * shares / assets` shares, rounded down.
    function delegate(address node, Role role, uint256 amount) external;

    /// @notice As `delegate`, with an ERC-2612 permit to this contract. A permit that somebody else used before is no
    ///         obstacle, because its allowance is there.
    function delegateWithPermit(
        address node,
        Role role,
        uint256 amount,
        uint256 deadline,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external;

    /// @notice Starts to unbond shares. From now on they earn no rewards and back no new bonds. A delegator may have
    ///         any number of requests.
    /// @dev Requests count in shares, which no slash can change. `positionOf` gives their worth.
    function startUnbonding(address node, Role role, uint256 shares) external returns (uint256 requestId);

    /// @notice Pays out a matured request of the sender. It reverts only while the remaining stake is less than the
    ///         bonds. For an owner, its remaining own stake must also be at least a tenth of them.
    function withdraw(uint256 requestId) external returns (uint256 amount);

    /// @notice Delegates a matured request to a node, without leaving the contract. Slashes of the old node no longer
    ///         reach this stake, as after a withdrawal. Not for the own stake of a node with a withdrawal address.
    function redelegate(uint256 requestId, address node, Role role) external returns (uint256 amount);

    /// @notice Pays out the sender's vested rewards from a node. The node's owner also gets the commission.
    function claim(address node, Role role) external returns (uint256 amount);
    function claimMany(NodeId[] calldata nodes) external returns (uint256 amount);

    // Voters.

    /// @param publicKey G2 point, EIP-2537 encoding (256 bytes).
    /// @param proofOfPossession G1 signature (EIP-2537 encoding, 128 bytes) on (chain id, this contract, sender, key).
    function registerVoterKey(bytes calldata publicKey, bytes calldata proofOfPossession) external;

    /// @notice keccak256 of the voter's registered key; zero if it has none.
    function voterKeyHash(address voter) external view returns (bytes32);
    /// @notice Commits the sender to its held-out rows, by their Merkle root. For a task the last root counts that its
    ///         voter committed to before joining it, so nobody can choose rows by the candidates.
    function commitHeldOut(bytes32 root) external;
    /// @notice True if `ticket` is the signature of `publicKey` on `message` under the tickets' domain tag. It does not say
    ///         whose key that is. False for identity points and for points outside their subgroups.
    function verifyTicket(bytes calldata publicKey, bytes calldata ticket, bytes calldata message)
        external
        view
        returns (bool);

    // Only for the task contract.

    /// @notice Locks stake for a bond. An account that is not a node has no stake.
    function lock(address node, Role role, uint256 amount) external;
    function unlock(address node, Role role, uint256 amount) external;
    /// @notice Burns up to `amount` of the node's locked stake, from all its shares alike, and the same proportion of
    ///         its unvested rewards. Returns the burnt stake.
    /// @dev Slashed stake is burnt and goes to nobody, so that nobody has a motive to cause a slash.
    function slash(address node, Role role, uint256 amount) external returns (uint256 burnt);
    /// @notice Takes the sum of all amounts from the task contract, by its allowance. Each amount vests to its node.
    function reward(Reward[] calldata rewards) external;

    /// @notice Takes an amount from the shares contract, by its allowance. It vests to the node as a reward does, and
    ///         lets rewards that are vesting end no later than their own and this one's amounts weigh.
    function give(address node, Role role, uint256 amount) external;

    // Views.

    /// @notice Seconds before unbonding stake can be withdrawn, and before a raised commission takes effect.
    function unbondingPeriod() external view returns (uint32);
    /// @notice Seconds over which rewards vest.
    function vestingPeriod() external view returns (uint32);
    /// @notice All stake held: active, locked and unbonding.
    function totalStaked() external view returns (uint96);
    function stakeOf(address node, Role role) external view returns (Stake memory);
    /// @notice A node's pool as of now; all zero if the node does not exist.
    function poolOf(address node, Role role) external view returns (Pool memory);
    /// @notice A delegator's shares that are not unbonding, their worth, and the rewards that it can claim.
    function positionOf(address delegator, address node, Role role)
        external
        view
        returns (uint256 shares, uint256 amount, uint256 claimable);
    /// @notice As of now; `current` is zero if the node itself is paid.
    function withdrawalAddressOf(address node, Role role) external view returns (Withdrawal memory);
    function requestCount(address delegator) external view returns (uint256);
    /// @notice A request and its worth now; all zero if it is closed.
    function requestOf(address delegator, uint256 requestId)
        external
        view
        returns (Request memory request, uint256 amount);
}
