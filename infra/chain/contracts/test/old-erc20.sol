// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// An ERC-20 token that predates the final standard: name and symbol are bytes32, and there is no decimals function.
contract OldErc20 {
    bytes32 public name;
    bytes32 public symbol;

    event Transfer(address indexed from, address indexed to, uint256 value);

    constructor(bytes32 name_, bytes32 symbol_) {
        name = name_;
        symbol = symbol_;
    }

    function mint(address to, uint256 value) external {
        emit Transfer(address(0), to, value);
    }
}
