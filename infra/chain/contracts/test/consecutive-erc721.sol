// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC721} from "@openzeppelin/contracts/token/ERC721/ERC721.sol";
import {ERC721Consecutive} from "@openzeppelin/contracts/token/ERC721/extensions/ERC721Consecutive.sol";

/// Mints in its constructor and reports all tokens with a single `ConsecutiveTransfer` event (EIP-2309).
contract ConsecutiveErc721 is ERC721Consecutive {
    constructor(address to, uint96 quantity) ERC721("Consecutive", "CON") {
        _mintConsecutive(to, quantity);
    }

    /// Mints one more token and reports it with a `Transfer` event.
    function mint(address to, uint256 tokenId) external {
        _mint(to, tokenId);
    }
}
