// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {SignatureChecker} from "@openzeppelin/contracts/utils/cryptography/SignatureChecker.sol";
import {ISponsoredAccount} from "../src/interfaces/ISponsoredAccount.sol";
import {GasMeter} from "./utils/GasMeter.sol";
import {Test} from "./utils/Vm.sol";

contract Nothing {
    fallback() external {}
}

contract Target {
    error Odd(uint256 value);

    mapping(address sender => uint256[]) private _seen;
    ISponsoredAccount.Call[] private _again;
    bytes private _signature;
    address private _account;

    function note(uint256 value) external {
        if (value % 2 == 1) revert Odd(value);
        _seen[msg.sender].push(value);
    }

    function seen(address sender) external view returns (uint256[] memory) {
        return _seen[sender];
    }

    function arm(address account, ISponsoredAccount.Call[] calldata calls, bytes calldata signature) external {
        (_account, _signature) = (account, signature);
        for (uint256 i = 0; i < calls.length; ++i) {
            _again.push(calls[i]);
        }
    }

    function reenter() external {
        ISponsoredAccount(_account).execute(_again, 0, type(uint256).max, _signature);
    }
}

contract SponsoredAccountTest is Test {
    uint256 private constant SECRET = 0xC0FFEE;
    uint256 private constant OTHER = 0xBEEF;
    uint256 private constant NEVER = type(uint256).max;
    address private constant SPONSOR = address(0x5905);
    /// @dev Order of secp256k1.
    uint256 private constant KEY_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141;

    Target private _target;
    address private _code;
    ISponsoredAccount private _account;
    ISponsoredAccount private _another;

    function setUp() public {
        _target = new Target();
        _code = vm.deployCode(_artifact("SponsoredAccount"), "");
        _account = _pointed(SECRET);
        _another = _pointed(OTHER);
    }

    /// @dev The state of an account after its authorization (EIP-7702).
    function _pointed(uint256 secret) private returns (ISponsoredAccount) {
        vm.etch(vm.addr(secret), abi.encodePacked(hex"ef0100", _code));
        return ISponsoredAccount(vm.addr(secret));
    }

    function _notes(uint256 first, uint256 second) private view returns (ISponsoredAccount.Call[] memory calls) {
        calls = new ISponsoredAccount.Call[](2);
        calls[0] = ISponsoredAccount.Call(address(_target), abi.encodeCall(Target.note, (first)));
        calls[1] = ISponsoredAccount.Call(address(_target), abi.encodeCall(Target.note, (second)));
    }

    function _signed(uint256 secret, bytes32 digest) private pure returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(secret, digest);
        return abi.encodePacked(r, s, v);
    }

    function _signature(ISponsoredAccount.Call[] memory calls, uint256 nonce, uint256 deadline)
        private
        view
        returns (bytes memory)
    {
        return _signed(SECRET, _account.batchDigest(calls, nonce, deadline));
    }

    function _assertSeen(address sender, uint256 count) private view {
        vm.assertEq(_target.seen(sender).length, count);
    }

    function _expectInvalid(ISponsoredAccount account) private {
        vm.expectRevert(abi.encodeWithSelector(ISponsoredAccount.BatchSignatureInvalid.selector, address(account)));
    }

    function test_execute_makesCallsInTheAccountsNameWhoeverSends() public {
        ISponsoredAccount.Call[] memory calls = _notes(2, 4);
        bytes memory signature = _signature(calls, 0, NEVER);
        vm.prank(SPONSOR);
        _account.execute(calls, 0, NEVER, signature);
        uint256[] memory seen = _target.seen(address(_account));
        vm.assertEq(seen.length, 2);
        vm.assertEq(seen[0], 2);
        vm.assertEq(seen[1], 4);
        _assertSeen(SPONSOR, 0);
    }

    function test_execute_makesAllCallsOrNoneAndSaysWhy() public {
        ISponsoredAccount.Call[] memory calls = _notes(2, 3);
        bytes memory signature = _signature(calls, 0, NEVER);
        vm.expectRevert(abi.encodeWithSelector(Target.Odd.selector, 3));
        _account.execute(calls, 0, NEVER, signature);
        _assertSeen(address(_account), 0);
        calls = _notes(2, 4); // the nonce is still to be had
        _account.execute(calls, 0, NEVER, _signature(calls, 0, NEVER));
        _assertSeen(address(_account), 2);
    }

    function test_execute_refusesBatchTwice() public {
        ISponsoredAccount.Call[] memory calls = _notes(2, 4);
        bytes memory signature = _signature(calls, 0, NEVER);
        _account.execute(calls, 0, NEVER, signature);
        vm.expectRevert(abi.encodeWithSelector(ISponsoredAccount.BatchNonceWrong.selector, 1, 0));
        _account.execute(calls, 0, NEVER, signature);
        _expectInvalid(_account); // nor under the nonce that is next
        _account.execute(calls, 1, NEVER, signature);
    }

    function test_execute_refusesBatchBeforeItsTurn() public {
        ISponsoredAccount.Call[] memory calls = _notes(2, 4);
        bytes memory signature = _signature(calls, 1, NEVER);
        vm.expectRevert(abi.encodeWithSelector(ISponsoredAccount.BatchNonceWrong.selector, 0, 1));
        _account.execute(calls, 1, NEVER, signature);
    }

    function test_execute_refusesItselfWithinItself() public {
        ISponsoredAccount.Call[] memory calls = new ISponsoredAccount.Call[](1);
        calls[0] = ISponsoredAccount.Call(address(_target), abi.encodeCall(Target.reenter, ()));
        bytes memory signature = _signature(calls, 0, NEVER);
        _target.arm(address(_account), calls, signature);
        vm.expectRevert(abi.encodeWithSelector(ISponsoredAccount.BatchNonceWrong.selector, 1, 0));
        _account.execute(calls, 0, NEVER, signature);
    }

    function test_execute_keepsTheDeadline() public {
        ISponsoredAccount.Call[] memory calls = _notes(2, 4);
        bytes memory signature = _signature(calls, 0, 1_000);
        vm.warp(1_001);
        vm.expectRevert(abi.encodeWithSelector(ISponsoredAccount.BatchExpired.selector, 1_000));
        _account.execute(calls, 0, 1_000, signature);
        _expectInvalid(_account); // nor under a later one
        _account.execute(calls, 0, 1_001, signature);
        vm.warp(1_000);
        _account.execute(calls, 0, 1_000, signature);
    }

    function testFuzz_execute_refusesOtherCalls(uint256 value, bytes calldata data, address to) public {
        bytes memory signature = _signature(_notes(2, 4), 0, NEVER);
        ISponsoredAccount.Call[] memory calls = _notes(2, (value | 1) - 1 == 4 ? 6 : (value | 1) - 1);
        _expectInvalid(_account);
        _account.execute(calls, 0, NEVER, signature);
        calls = _notes(2, 4);
        calls[1] = ISponsoredAccount.Call(to, data);
        _expectInvalid(_account);
        _account.execute(calls, 0, NEVER, signature);
    }

    function test_execute_refusesCallsInAnotherOrderOrNumber() public {
        bytes memory signature = _signature(_notes(2, 4), 0, NEVER);
        _expectInvalid(_account);
        _account.execute(_notes(4, 2), 0, NEVER, signature);
        ISponsoredAccount.Call[] memory one = new ISponsoredAccount.Call[](1);
        one[0] = _notes(2, 4)[0];
        _expectInvalid(_account);
        _account.execute(one, 0, NEVER, signature);
        _expectInvalid(_account);
        _account.execute(new ISponsoredAccount.Call[](0), 0, NEVER, signature);
    }

    function test_execute_refusesAnothersSignature() public {
        ISponsoredAccount.Call[] memory calls = _notes(2, 4);
        bytes memory signature = _signed(OTHER, _account.batchDigest(calls, 0, NEVER));
        _expectInvalid(_account);
        _account.execute(calls, 0, NEVER, signature);
    }

    function test_execute_refusesWhatWasSignedForAnotherAccount() public {
        ISponsoredAccount.Call[] memory calls = _notes(2, 4);
        bytes memory signature = _signature(calls, 0, NEVER);
        _expectInvalid(_another);
        _another.execute(calls, 0, NEVER, signature);
    }

    function test_execute_refusesWhatWasSignedForAnotherChain() public {
        ISponsoredAccount.Call[] memory calls = _notes(2, 4);
        bytes memory signature = _signature(calls, 0, NEVER);
        vm.chainId(1);
        _expectInvalid(_account);
        _account.execute(calls, 0, NEVER, signature);
    }

    /// @dev The deployed code is no account itself.
    function test_execute_refusesTheCodeItself() public {
        ISponsoredAccount code = ISponsoredAccount(_code);
        ISponsoredAccount.Call[] memory calls = _notes(2, 4);
        bytes memory signature = _signed(SECRET, code.batchDigest(calls, 0, NEVER));
        _expectInvalid(code);
        code.execute(calls, 0, NEVER, signature);
    }

    function test_execute_refusesOtherFormsOfASignature() public {
        ISponsoredAccount.Call[] memory calls = _notes(2, 4);
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(SECRET, _account.batchDigest(calls, 0, NEVER));
        bytes[4] memory forms = [
            bytes(""),
            abi.encodePacked(r, s),
            abi.encodePacked(r, bytes32(KEY_ORDER - uint256(s)), v == 27 ? 28 : 27),
            abi.encodePacked(r, s, v, uint8(0))
        ];
        for (uint256 i = 0; i < forms.length; ++i) {
            _expectInvalid(_account);
            _account.execute(calls, 0, NEVER, forms[i]);
        }
    }

    function test_execute_refusesCallsOfAddressesWithoutCode() public {
        ISponsoredAccount.Call[] memory calls = _notes(2, 4);
        calls[1].to = SPONSOR;
        bytes memory signature = _signature(calls, 0, NEVER);
        vm.expectRevert(abi.encodeWithSignature("AddressEmptyCode(address)", SPONSOR));
        _account.execute(calls, 0, NEVER, signature);
    }

    function test_receive_takesEther() public {
        (bool ok,) = address(_account).call{value: 1}("");
        vm.assertTrue(ok);
        vm.assertEq(address(_account).balance, 1);
    }

    function test_isValidSignature_answersAsForAnAccountWithoutCode() public view {
        bytes32 hash = keccak256("a permit");
        bytes memory own = _signed(SECRET, hash);
        vm.assertTrue(SignatureChecker.isValidSignatureNow(address(_account), hash, own));
        vm.assertFalse(SignatureChecker.isValidSignatureNow(address(_account), hash, _signed(OTHER, hash)));
        vm.assertFalse(SignatureChecker.isValidSignatureNow(address(_account), keccak256("another"), own));
        vm.assertTrue(IERC1271(address(_account)).isValidSignature(hash, "") == bytes4(0xffffffff));
    }
}

contract SponsoredGasTest is GasMeter {
    uint256 private constant SECRET = 0xC0FFEE;
    ISponsoredAccount private immutable _account = ISponsoredAccount(vm.addr(SECRET));
    ISponsoredAccount.Call[] private _calls;
    bytes private _signature;

    function setUp() public {
        vm.etch(address(_account), abi.encodePacked(hex"ef0100", vm.deployCode(_artifact("SponsoredAccount"), "")));
        address target = address(new Nothing());
        for (uint256 i = 0; i < 2; ++i) {
            _calls.push(ISponsoredAccount.Call(target, new bytes(4)));
            (uint8 v, bytes32 r, bytes32 s) = vm.sign(SECRET, _account.batchDigest(_calls, i, type(uint256).max));
            _signature = abi.encodePacked(r, s, v);
            if (i == 0) _account.execute(_calls, 0, type(uint256).max, _signature);
        }
    }

    /// @dev Of an account that has sent a batch before; its first one costs 17,100 more for the nonce's word, and
    ///      25,000 for the authorization.
    function test_execute_costsLessThan50kForTwoCallsOfNothing() public {
        bytes memory data = abi.encodeCall(ISponsoredAccount.execute, (_calls, 1, type(uint256).max, _signature));
        vm.assertLe(
            _measure("sponsoring", "execute, two calls of nothing", address(0x5905), address(_account), data), 50_000
        );
    }
}
