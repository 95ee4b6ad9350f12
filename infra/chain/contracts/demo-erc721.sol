// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AccessControl} from "@openzeppelin/contracts/access/AccessControl.sol";
import {ERC721} from "@openzeppelin/contracts/token/ERC721/ERC721.sol";
import {MintingRoles} from "./minting-roles.sol";

/// An ERC-721 collection. The minter chooses ids below a threshold. The contract assigns ids above the threshold, so that
/// the two ranges never overlap.
contract DemoErc721 is ERC721, MintingRoles {
    /// A request for tokens with chosen ids for one owner.
    struct MintByIds {
        address to;
        uint256[] tokenIds;
    }

    /// A request for a number of tokens for one owner. The contract assigns the ids.
    struct MintByQuantity {
        address to;
        uint256 quantity;
    }

    uint256 private constant THRESHOLD = 2 ** 128;

    uint256 private _nextByQuantity = THRESHOLD;
    uint256 private _supply;

    error TokenAlreadyMinted(uint256 tokenId);
    error TokenIdNotBelowThreshold(uint256 tokenId, uint256 threshold);
    error QuantityIsZero(address to);

    constructor(address admin, string memory name, string memory symbol) ERC721(name, symbol) MintingRoles(admin) {}

    /// Mints the batch atomically: one id that cannot be minted reverts the batch.
    function mintBatch(MintByIds[] calldata mints) external onlyRole(MINTER_ROLE) {
        for (uint256 i = 0; i < mints.length; ++i) {
            uint256[] calldata tokenIds = mints[i].tokenIds;
            for (uint256 j = 0; j < tokenIds.length; ++j) {
                uint256 tokenId = tokenIds[j];
                if (tokenId >= THRESHOLD) revert TokenIdNotBelowThreshold(tokenId, THRESHOLD);
                if (_ownerOf(tokenId) != address(0)) revert TokenAlreadyMinted(tokenId);
                _mint(mints[i].to, tokenId);
            }
        }
    }

    /// Assigns unique, consecutive ids in batch order, starting at `mintBatchByQuantityThreshold`.
    function mintBatchByQuantity(MintByQuantity[] calldata mints) external onlyRole(MINTER_ROLE) {
        uint256 tokenId = _nextByQuantity;
        for (uint256 i = 0; i < mints.length; ++i) {
            if (mints[i].quantity == 0) revert QuantityIsZero(mints[i].to);
            for (uint256 j = 0; j < mints[i].quantity; ++j) _mint(mints[i].to, tokenId++);
        }
        _nextByQuantity = tokenId;
    }

    /// Only the owner and approved accounts can burn a token.
    function burn(uint256 tokenId) external {
        _update(address(0), tokenId, _msgSender());
    }

    function mintBatchByQuantityThreshold() external pure returns (uint256) {
        return THRESHOLD;
    }

    /// Returns the number of tokens that were minted and not burned.
    function totalSupply() external view returns (uint256) {
        return _supply;
    }

    function supportsInterface(bytes4 interfaceId) public view override(ERC721, AccessControl) returns (bool) {
        return super.supportsInterface(interfaceId);
    }

    function _update(address to, uint256 tokenId, address auth) internal override returns (address from) {
        from = super._update(to, tokenId, auth);
        if (from == address(0)) ++_supply;
        if (to == address(0)) --_supply;
    }
}
