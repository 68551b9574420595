// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice A token that keeps a hundredth of each transfer, or calls a contract back within it. Allowances are not checked.
contract HostileToken {
    enum Trick {
        None,
        Fee,
        CallBack
    }

    Trick private _trick;
    address private _target;
    bytes private _call;
    bool public wasRefused;
    mapping(address account => uint256) private _balances;

    function start(Trick trick) external {
        _trick = trick;
    }

    function give(address to, uint256 amount) external {
        _balances[to] = amount;
    }

    function arm(address target, bytes calldata data) external {
        (_target, _call, wasRefused) = (target, data, false);
    }

    function balanceOf(address account) external view returns (uint256) {
        return _balances[account];
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        return _move(msg.sender, to, amount);
    }

    function transferFrom(address from, address to, uint256 amount) external returns (bool) {
        return _move(from, to, amount);
    }

    function _move(address from, address to, uint256 amount) private returns (bool) {
        _balances[from] -= amount;
        _balances[to] += _trick == Trick.Fee ? amount - amount / 100 : amount;
        if (_trick != Trick.CallBack || _target == address(0)) return true;
        address target = _target;
        _target = address(0);
        (bool ok,) = target.call(_call);
        wasRefused = !ok;
        return true;
    }
}
