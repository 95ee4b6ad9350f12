// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// An ERC-20 whose descriptions cost a node as much as they can: each of them takes all gas of a call in another way.
contract HostileErc20 {
    event Transfer(address indexed from, address indexed to, uint256 value);

    function mint(address to, uint256 value) external {
        emit Transfer(address(0), to, value);
    }

    /// Runs until the gas is used up.
    function name() external view returns (string memory) {
        uint256 left = gasleft();
        while (left > 0) left = gasleft();
        return "";
    }

    /// Asks for more memory than any gas pays for.
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
