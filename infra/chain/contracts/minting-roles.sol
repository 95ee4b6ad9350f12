// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AccessControl} from "@openzeppelin/contracts/access/AccessControl.sol";

/// The minting roles of a contract. The administrator grants and revokes them with `grantRole` and `revokeRole`.
abstract contract MintingRoles is AccessControl {
    /// Accounts with this role may mint.
    bytes32 public constant MINTER_ROLE = keccak256("MINTER_ROLE");
    /// Accounts with this role may sign for other accounts. The demo contracts do not check this role.
    bytes32 public constant SIGNER_ROLE = keccak256("SIGNER_ROLE");

    /// A contract without an administrator could never grant a role.
    error AdminIsMissing();

    constructor(address admin) {
        if (admin == address(0)) revert AdminIsMissing();
        _grantRole(DEFAULT_ADMIN_ROLE, admin);
    }
}
