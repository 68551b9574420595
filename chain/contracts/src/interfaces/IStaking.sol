// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Pool} from "../types/Pool.sol";

/// @title Stakes of nodes, delegation to them, their rewards; and voters' keys. The only contract that holds stake.
/// @notice A node is an owner's address in a role. Owner and delegators hold shares of its one pool, so gains and
///         losses reach them pro rata. Amounts are in the token's smallest unit, times in seconds since the epoch.
///
///         Locked stake answers for behaviour in tasks. All of a pool answers for its bonds, unbonding stake included;
///         new bonds find room only in stake that is not unbonding. So a node that goes on joining tasks keeps nobody:
///         who starts to unbond can withdraw, if prompt, as soon as the unbonding period is over and either the node
///         has locked a bond since, or the tasks have ended that ran at the start.
///
///         Rewards do not compound. They vest evenly, commission to the owner and the rest to shares that are not
///         unbonding, second by second, and wait to be claimed.
interface IStaking {
    enum Role {
        Hospital,
        Voter,
        Aggregator
    }

    /// @notice A pool's stake. `active` and `unbonding` add up to all of it; `free` is what new bonds can lock.
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

    /// @notice Shares on their way out of a pool, and out of rewards; worth what they are worth when they leave.
    struct Request {
        address node;
        Role role;
        uint40 maturesAt;
        uint32 generation; // of the pool; nothing is left of an earlier one
        uint112 shares;
    }

    // Totals after the event follow what happened, so that anybody's part of it can be computed from events alone.

    event NodeRegistered(address indexed node, Role indexed role, uint256 commissionBps);
    event CommissionSet(address indexed node, Role indexed role, uint256 commissionBps, uint256 effectiveAt);
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
    /// @param amount Stake burnt: every share, unbonding ones too, lost amount / (amount + totalAssets) of its worth.
    /// @param forfeited Unvested rewards burnt.
    event StakeSlashed(
        address indexed node,
        Role indexed role,
        uint256 amount,
        uint256 forfeited,
        uint256 totalAssets,
        uint256 totalShares
    );
    /// @notice A slash took all: the shares of all generations before `generation` are worth nothing.
    event PoolWiped(address indexed node, Role indexed role, uint256 generation);
    event RewardAdded(address indexed node, Role indexed role, uint256 amount, uint256 vestingEnd);
    /// @param commission What the owner got of what vested.
    /// @param indexX48 What one share has earned since the node was registered, 48 bits of it fraction, and one.
    event RewardsVested(address indexed node, Role indexed role, uint256 commission, uint256 indexX48);
    event Claimed(address indexed node, Role indexed role, address indexed delegator, uint256 amount);
    /// @param publicKey EIP-2537 encoding of the G2 key, 256 bytes.
    event VoterKeyRegistered(address indexed voter, bytes publicKey);
    /// @param root Of the Merkle tree over the rows that the voter judges by.
    event HeldOutCommitted(address indexed voter, bytes32 root);

    error AmountIsZero();
    error AlreadyRegistered(address node, Role role);
    /// @notice The owner has to `register` first.
    error NodeUnknown(address node, Role role);
    error CommissionTooHigh(uint256 commissionBps);
    /// @notice Slashes took so much of the pool's price that no more shares can be counted. Its node takes no more
    ///         stake, and its owner has to register another; leaving is possible as ever.
    error PoolWornOut(uint256 assets, uint256 shares);
    error StakeInsufficient(address node, Role role, uint256 free, uint256 wanted);
    error LockedInsufficient(address node, Role role, uint256 locked, uint256 wanted);
    error SharesInsufficient(address node, Role role, uint256 shares, uint256 wanted);
    /// @notice There is no such request, or it is closed.
    error RequestUnknown(address delegator, uint256 requestId);
    error StillUnbonding(uint256 maturesAt);
    /// @notice What would stay does not cover the bonds of running tasks: wait until they are released.
    error StillBacking(address node, Role role, uint256 locked, uint256 left);
    error NothingToClaim(address account);
    error OnlyTasks(address caller);
    error OnlyDeployer(address caller);
    error TasksAlreadySet(address tasks);
    /// @notice Vesting takes at least a second, and unbonding no less than vesting.
    error PeriodsInvalid(uint256 unbondingPeriod, uint256 vestingPeriod);
    /// @notice Amounts are counted in 96 bits.
    error SupplyTooLarge(uint256 supply);
    error VoterKeyMalformed(uint256 length);
    /// @notice The proof of possession does not verify, or the key is the identity or outside the subgroup.
    error ProofOfPossessionInvalid(address voter);
    /// @notice Another voter has this key, or had it: make one of your own.
    error VoterKeyTaken(address voter);
    /// @notice A node's owner holds at least a tenth of what its bonds lock (`Pools.OWN_BPS`), for as long as they do: who
    ///         can have others' stake locked has its own in it.
    /// @param own what the owner's shares are worth, or would be: at joining those that are not unbonding.
    error OwnStakeInsufficient(address node, Role role, uint256 own, uint256 wanted);

    // Owners.

    /// @notice Makes the sender a node in `role`, once and for good, and stakes `amount` (may be zero) on it.
    /// @param commissionBps The owner's part of rewards, in hundredths of a percent, before shares get theirs.
    function register(Role role, uint256 commissionBps, uint256 amount) external;

    /// @notice Lowers the commission at once, and takes back a raise not yet in effect; or announces a raise, which
    ///         takes effect after the unbonding period: delegators who disagree stop paying it by unbonding before.
    function setCommission(Role role, uint256 commissionBps) external;

    // Delegators, among whom owners are: their own stake is shares in the same pool.

    /// @notice Stakes `amount` on a node. Mints `amount * shares / assets` shares, rounded down.
    function delegate(address node, Role role, uint256 amount) external;

    /// @notice The same with an ERC-2612 permit to this contract. A permit that somebody else has used already is no
    ///         obstacle: the allowance is there.
    function delegateWithPermit(
        address node,
        Role role,
        uint256 amount,
        uint256 deadline,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external;

    /// @notice Starts to unbond shares, at once without rewards and without backing new bonds. Any number of requests
    ///         may be under way.
    /// @dev In shares, which no slash on the way can change. Their worth is in `positionOf`.
    function startUnbonding(address node, Role role, uint256 shares) external returns (uint256 requestId);

    /// @notice Pays a matured request of the sender's out. Refused only while what stays is less than the bonds; to an
    ///         owner, also while what stays of its own is less than a tenth of them.
    function withdraw(uint256 requestId) external returns (uint256 amount);

    /// @notice Delegates a matured request to a node instead, without leaving the contract. It has served its time:
    ///         the node it leaves can no more be slashed for it than if it had been withdrawn.
    function redelegate(uint256 requestId, address node, Role role) external returns (uint256 amount);

    /// @notice Pays out the sender's vested rewards from one node; for its owner, with the commission.
    function claim(address node, Role role) external returns (uint256 amount);
    function claimMany(NodeId[] calldata nodes) external returns (uint256 amount);

    // Voters.

    /// @param publicKey G2 point, EIP-2537 encoding (256 bytes).
    /// @param proofOfPossession G1 signature (EIP-2537 encoding, 128 bytes) on (chain id, this contract, sender, key).
    function registerVoterKey(bytes calldata publicKey, bytes calldata proofOfPossession) external;

    /// @notice keccak256 of the voter's registered key; zero where none.
    function voterKeyHash(address voter) external view returns (bytes32);
    /// @notice Says by which rows the sender will judge, as the Merkle root over them. What counts for a task is the
    ///         last root that its voter committed before joining it: nobody chooses rows by the candidates.
    function commitHeldOut(bytes32 root) external;
    /// @notice True if `ticket` is the signature of `publicKey` on `message` under the tickets' domain tag. Says nothing
    ///         on whose key it is. False for identity points and for what is not in its subgroup.
    function verifyTicket(bytes calldata publicKey, bytes calldata ticket, bytes calldata message)
        external
        view
        returns (bool);

    // The task contract alone.

    /// @notice Lets stake answer for a bond; who is no node has none.
    function lock(address node, Role role, uint256 amount) external;
    function unlock(address node, Role role, uint256 amount) external;
    /// @notice Burns up to `amount` of the node's locked stake, from all its shares alike, and the same proportion of
    ///         its unvested rewards. Returns the stake that was burnt.
    /// @dev Burning, rather than paying anybody, leaves nobody with a motive to cause a slash.
    function slash(address node, Role role, uint256 amount) external returns (uint256 burnt);
    /// @notice Takes the sum of all amounts from the task contract, by its allowance, and lets each vest to its node.
    function reward(Reward[] calldata rewards) external;

    // Views.

    /// @notice Seconds between the start of unbonding and withdrawal; and before a raised commission takes effect.
    function unbondingPeriod() external view returns (uint32);
    /// @notice Seconds over which rewards vest.
    function vestingPeriod() external view returns (uint32);
    /// @notice All stake held: active, locked and unbonding.
    function totalStaked() external view returns (uint96);
    function stakeOf(address node, Role role) external view returns (Stake memory);
    /// @notice A node's pool as of now; all zero where there is no such node.
    function poolOf(address node, Role role) external view returns (Pool memory);
    /// @notice A delegator's shares that are not unbonding, what they are worth, and what it can claim.
    function positionOf(address delegator, address node, Role role)
        external
        view
        returns (uint256 shares, uint256 amount, uint256 claimable);
    function requestCount(address delegator) external view returns (uint256);
    /// @notice A request and what it is worth now; all zero where it is closed.
    function requestOf(address delegator, uint256 requestId)
        external
        view
        returns (Request memory request, uint256 amount);
}
