// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// An ERC-20 with metadata functions that consume all gas of a call, each in a different way.
contract HostileErc20 {
    event Transfer(address indexed from, address indexed to, uint256 value);

    function mint(address to, uint256 value) external {
        emit Transfer(address(0), to, value);
    }

    /// Loops until the gas is exhausted.
    function name() external view returns (string memory) {
        uint256 left = gasleft();
        while (left > 0) left = gasleft();
        return "";
    }

    /// Requests more memory than any amount of gas can pay for.
    function symbol() external pure {
        assembly ("memory-safe") {
            return(0, 0xffffffff)
        }
    }

    function decimals() external pure {
        assembly ("memory-safe") {
            invalid()
        }
    }
}
