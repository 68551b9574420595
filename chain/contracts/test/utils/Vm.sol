// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice The mode in which forge runs.
enum Context {
    TestGroup,
    Test,
    Coverage
}

/// @notice Gas of a call that is a transaction of its own (`isolate`), with the transaction's fixed cost.
struct Gas {
    uint64 gasLimit;
    uint64 gasTotalUsed;
    uint64 gasMemoryUsed;
    int64 gasRefunded;
    uint64 gasRemaining;
}

/// @notice An event as it was emitted.
struct Log {
    bytes32[] topics;
    bytes data;
    address emitter;
}

/// @notice The cheats of forge that these tests use.
interface Vm {
    function addr(uint256 secret) external pure returns (address);
    function assume(bool condition) external pure;
    function assertEq(uint256 left, uint256 right) external pure;
    function assertEq(int256 left, int256 right) external pure;
    function assertEq(bytes32 left, bytes32 right) external pure;
    function assertEq(address left, address right) external pure;
    function assertEq(bytes calldata left, bytes calldata right) external pure;
    function assertEq(string calldata left, string calldata right) external pure;
    function assertTrue(bool condition) external pure;
    function assertFalse(bool condition) external pure;
    function assertLe(uint256 left, uint256 right) external pure;
    function assertGt(uint256 left, uint256 right) external pure;
    function blobhashes(bytes32[] calldata hashes) external;
    function chainId(uint256 id) external;
    function deployCode(string calldata path, bytes calldata arguments) external returns (address);
    function etch(address target, bytes calldata code) external;
    function expectEmit(address emitter) external;
    function expectPartialRevert(bytes4 selector) external;
    function expectRevert(bytes calldata data) external;
    function expectRevert(bytes4 selector) external;
    function getCode(string calldata path) external view returns (bytes memory);
    function getDeployedCode(string calldata path) external view returns (bytes memory);
    function getRecordedLogs() external returns (Log[] memory logs);
    function isContext(Context context) external view returns (bool);
    function keyExistsJson(string calldata json, string calldata key) external view returns (bool);
    function lastCallGas() external view returns (Gas memory);
    function parseJsonAddress(string calldata json, string calldata key) external pure returns (address);
    function parseJsonBool(string calldata json, string calldata key) external pure returns (bool);
    function parseJsonBytes(string calldata json, string calldata key) external pure returns (bytes memory);
    function parseJsonBytes32(string calldata json, string calldata key) external pure returns (bytes32);
    function parseJsonInt(string calldata json, string calldata key) external pure returns (int256);
    function parseJsonIntArray(string calldata json, string calldata key) external pure returns (int256[] memory);
    function parseJsonString(string calldata json, string calldata key) external pure returns (string memory);
    function parseJsonStringArray(string calldata json, string calldata key) external pure returns (string[] memory);
    function parseJsonUint(string calldata json, string calldata key) external pure returns (uint256);
    function parseJsonUintArray(string calldata json, string calldata key) external pure returns (uint256[] memory);
    function prank(address sender) external;
    function readFile(string calldata path) external view returns (string memory);
    function readLine(string calldata path) external returns (string memory);
    function recordLogs() external;
    function revertToState(uint256 id) external returns (bool);
    function roll(uint256 number) external;
    function setBlockhash(uint256 number, bytes32 hash) external;
    function sign(uint256 secret, bytes32 digest) external pure returns (uint8 v, bytes32 r, bytes32 s);
    function signP256(uint256 secret, bytes32 digest) external pure returns (bytes32 r, bytes32 s);
    function publicKeyP256(uint256 secret) external pure returns (uint256 x, uint256 y);
    function snapshotState() external returns (uint256 id);
    function snapshotValue(string calldata group, string calldata name, uint256 value) external;
    function startPrank(address sender) external;
    function stopPrank() external;
    function toString(uint256 value) external pure returns (string memory);
    function warp(uint256 timestamp) external;
}

abstract contract Test {
    bool public constant IS_TEST = true;

    Vm internal constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

    /// @dev The path of the contract that ships: by its name forge might take one that it
    ///      compiled with the tests' settings. Coverage uses its own build, which is in no file.
    function _artifact(string memory name) internal view returns (string memory) {
        if (vm.isContext(Context.Coverage)) return string.concat(name, ".sol:", name);
        return string.concat("out/", name, ".sol/", name, ".json");
    }

    function _bound(uint256 value, uint256 least, uint256 most) internal pure returns (uint256) {
        return least + value % (most - least + 1);
    }
}
