// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {MintingRoles} from "./minting-roles.sol";

/// A currency with 18 decimals.
contract DemoErc20 is ERC20, MintingRoles {
    constructor(address admin, string memory name, string memory symbol) ERC20(name, symbol) MintingRoles(admin) {}

    function mint(address to, uint256 value) external onlyRole(MINTER_ROLE) {
        _mint(to, value);
    }

    /// Burns tokens of the caller.
    function burn(uint256 value) external {
        _burn(_msgSender(), value);
    }
}
