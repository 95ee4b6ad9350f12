// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AccessControl} from "@openzeppelin/contracts/access/AccessControl.sol";

/// Who may do what with a contract. Its administrator gives and takes roles: `grantRole`, `revokeRole`, `hasRole`.
abstract contract MintingRoles is AccessControl {
    /// May mint.
    bytes32 public constant MINTER_ROLE = keccak256("MINTER_ROLE");
    /// Whose signatures others may ask for. Nothing here checks it.
    bytes32 public constant SIGNER_ROLE = keccak256("SIGNER_ROLE");

    /// A contract that nobody administers could never give a role.
    error AdminIsMissing();

    constructor(address admin) {
        if (admin == address(0)) revert AdminIsMissing();
        _grantRole(DEFAULT_ADMIN_ROLE, admin);
    }
}
