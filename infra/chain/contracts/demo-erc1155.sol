// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AccessControl} from "@openzeppelin/contracts/access/AccessControl.sol";
import {ERC1155} from "@openzeppelin/contracts/token/ERC1155/ERC1155.sol";
import {MintingRoles} from "./minting-roles.sol";

/// An ERC-1155 collection, in which each id can have many tokens.
contract DemoErc1155 is ERC1155, MintingRoles {
    string public name;

    mapping(uint256 id => uint256 value) private _supply;

    constructor(address admin, string memory name_) ERC1155("") MintingRoles(admin) {
        name = name_;
    }

    /// Mints safely: if the owner is a contract, it must accept the tokens; otherwise, the call reverts.
    function safeMint(address to, uint256 id, uint256 value, bytes calldata data) external onlyRole(MINTER_ROLE) {
        _mint(to, id, value, data);
    }

    function safeMintBatch(address to, uint256[] calldata ids, uint256[] calldata values, bytes calldata data)
        external
        onlyRole(MINTER_ROLE)
    {
        _mintBatch(to, ids, values, data);
    }

    /// Only the owner and approved operators can burn tokens.
    function burn(address from, uint256 id, uint256 value) external {
        if (from != _msgSender() && !isApprovedForAll(from, _msgSender())) {
            revert ERC1155MissingApprovalForAll(_msgSender(), from);
        }
        _burn(from, id, value);
    }

    /// Returns the number of tokens with this id that were minted and not burned.
    function totalSupply(uint256 id) external view returns (uint256) {
        return _supply[id];
    }

    function supportsInterface(bytes4 interfaceId) public view override(ERC1155, AccessControl) returns (bool) {
        return super.supportsInterface(interfaceId);
    }

    function _update(address from, address to, uint256[] memory ids, uint256[] memory values) internal override {
        super._update(from, to, ids, values);
        for (uint256 i = 0; i < ids.length; ++i) {
            if (from == address(0)) _supply[ids[i]] += values[i];
            if (to == address(0)) _supply[ids[i]] -= values[i];
        }
    }
}
