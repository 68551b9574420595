// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @title Stakes of nodes by role, and voters' keys. The only contract that holds stake.
/// @notice `free` can be locked by a task or unbonded; `locked` answers for behaviour in a task;
///         `unbonding` waits for withdrawal and can still be slashed.
interface IStaking {
    enum Role {
        Hospital,
        Voter,
        Aggregator
    }

    struct Stake {
        uint128 free;
        uint128 locked;
        uint128 unbonding;
        uint64 withdrawableAt;
    }

    event Staked(address indexed node, Role indexed role, uint256 amount);
    event UnbondingStarted(address indexed node, Role indexed role, uint256 amount, uint64 withdrawableAt);
    event Withdrawn(address indexed node, Role indexed role, uint256 amount);
    event StakeLocked(address indexed node, Role indexed role, uint256 amount);
    event StakeUnlocked(address indexed node, Role indexed role, uint256 amount);
    event StakeSlashed(address indexed node, Role indexed role, uint256 amount);
    /// @param publicKey EIP-2537 encoding of the G2 key, 256 bytes.
    event VoterKeyRegistered(address indexed voter, bytes publicKey);

    error AmountIsZero();
    error StakeInsufficient(address node, Role role, uint256 free, uint256 wanted);
    error UnbondingInProgress(uint256 amount, uint64 withdrawableAt);
    error NothingToWithdraw(address node, Role role);
    error StillUnbonding(uint64 withdrawableAt);
    error OnlyTasks(address caller);
    error OnlyDeployer(address caller);
    error TasksAlreadySet(address tasks);
    error VoterKeyMalformed(uint256 length);
    /// @notice The proof of possession does not verify, or the key is the identity or outside the subgroup.
    error ProofOfPossessionInvalid(address voter);

    function stake(Role role, uint256 amount) external;
    /// @notice Starts unbonding of free stake; one unbonding at a time per role.
    function startUnbonding(Role role, uint256 amount) external;
    function withdraw(Role role) external;

    /// @param publicKey G2 point, EIP-2537 encoding (256 bytes).
    /// @param proofOfPossession G1 signature (EIP-2537 encoding, 128 bytes) on (chain id, this contract, sender, key).
    function registerVoterKey(bytes calldata publicKey, bytes calldata proofOfPossession) external;

    /// @notice keccak256 of the voter's registered key; zero where none.
    function voterKeyHash(address voter) external view returns (bytes32);
    /// @notice True if `ticket` is the signature of `publicKey` on `message` under the tickets' domain tag. Says nothing
    ///         on whose key it is. False for identity points and for what is not in its subgroup.
    function verifyTicket(bytes calldata publicKey, bytes calldata ticket, bytes calldata message)
        external
        view
        returns (bool);
    function stakeOf(address node, Role role) external view returns (Stake memory);

    // The task contract alone.
    function lock(address node, Role role, uint256 amount) external;
    function unlock(address node, Role role, uint256 amount) external;
    /// @notice Burns up to `amount` of the node's locked stake; returns what was burnt.
    /// @dev Burning, rather than paying anybody, leaves nobody with a motive to cause a slash.
    function slash(address node, Role role, uint256 amount) external returns (uint256 burnt);
}
