import { type MintStateRecord, toHexText } from '@playline/contracts';
import { decodeErrorResult, encodeFunctionData, parseAbi } from 'viem/utils';

/** The functions that preset collection contracts provide. */
export const MINT_ABI = parseAbi([
  'struct IdMint { address to; uint256[] tokenIds; }',
  'struct QuantityMint { address to; uint256 quantity; }',
  'function mintBatch(IdMint[] mints)',
  'function mintBatchByQuantity(QuantityMint[] mints)',
  'function safeMintBatch(address to, uint256[] ids, uint256[] values, bytes data)',
  'function supportsInterface(bytes4 interfaceId) view returns (bool)',
  'function hasRole(bytes32 role, address account) view returns (bool)',
]);

/** Errors that are shown by name. Other errors are shown as hexadecimal data. */
const ERROR_ABI = parseAbi([
  'error AccessControlUnauthorizedAccount(address account, bytes32 neededRole)',
  'error ERC721InvalidSender(address sender)',
  'error ERC721InvalidReceiver(address receiver)',
  'error ERC721InvalidOwner(address owner)',
  'error ERC721NonexistentToken(uint256 tokenId)',
  'error ERC1155InvalidReceiver(address receiver)',
  'error ERC1155InvalidArrayLength(uint256 idsLength, uint256 valuesLength)',
  'error EnforcedPause()',
  'error TokenAlreadyMinted(uint256 tokenId)',
  'error TokenIdNotBelowThreshold(uint256 tokenId, uint256 threshold)',
  'error QuantityIsZero(address to)',
]);

/** Interface ids for ERC-165. */
export const ERC721_INTERFACE = '0x80ac58cd';
export const ERC1155_INTERFACE = '0xd9b67a26';

export type TokenStandard = 'ERC721' | 'ERC1155';

const MESSAGE_CHARACTERS_MAX = 500;

/** Returns why no contract can mint the asset, or null. */
export function validationErrorOf({ tokenId, amount }: MintStateRecord, standard: TokenStandard): string | null {
  if (standard === 'ERC1155') return tokenId === null ? 'A token in an ERC-1155 collection requires a token_id.' : null;
  return amount === null || amount === '1' ? null : 'A token in an ERC-721 collection must have an amount of 1.';
}

/** Returns a key. Assets with equal keys can share a transaction. */
export function toFunctionKey({ tokenId, ownerAddress }: MintStateRecord, standard: TokenStandard): string {
  if (standard === 'ERC1155') return `safeMintBatch:${toHexText(ownerAddress)}`;
  return tokenId === null ? 'mintBatchByQuantity' : 'mintBatch';
}

/** Encodes the call, with one entry per asset in order. */
export function encodeMint(assets: readonly MintStateRecord[], standard: TokenStandard): string {
  if (standard === 'ERC1155') {
    const ids = assets.map(({ tokenId }) => BigInt(tokenId ?? '0'));
    const values = assets.map(({ amount }) => BigInt(amount ?? '1'));
    const args = [toHexText(assets[0]!.ownerAddress), ids, values, '0x'] as const;
    return encodeFunctionData({ abi: MINT_ABI, functionName: 'safeMintBatch', args });
  }
  if (assets[0]!.tokenId === null) {
    const mints = assets.map(({ ownerAddress }) => ({ to: toHexText(ownerAddress), quantity: 1n }));
    return encodeFunctionData({ abi: MINT_ABI, functionName: 'mintBatchByQuantity', args: [mints] });
  }
  const mints = assets.map(({ ownerAddress, tokenId }) => ({
    to: toHexText(ownerAddress),
    tokenIds: [BigInt(tokenId!)],
  }));
  return encodeFunctionData({ abi: MINT_ABI, functionName: 'mintBatch', args: [mints] });
}

/** The selector for `Error(string)`. */
const ERROR_SELECTOR = '0x08c379a0';

/** Decodes an error message from possibly truncated data. @throws RangeError if the data is invalid */
function toErrorMessage(data: string): string {
  const bytes = Buffer.from(data.slice(ERROR_SELECTOR.length), 'hex');
  const numberAt = (at: number) => Number(BigInt(`0x${bytes.toString('hex', at, at + 32)}`));
  const from = numberAt(0);
  if (from > bytes.length - 32) throw new RangeError('the error message is outside the data');
  const text = bytes.subarray(from + 32, from + 32 + Math.min(numberAt(from), bytes.length)).toString('utf8');
  // The last character may be truncated, and a short message is padded.
  return text.replace(/\0+$/, '').slice(0, MESSAGE_CHARACTERS_MAX).toWellFormed();
}

/** @param data hexadecimal */
export function toRefusalMessage(data: string): string {
  if (data === '0x') return 'The contract rejected the call without a message.';
  try {
    if (data.startsWith(ERROR_SELECTOR)) return toErrorMessage(data);
    const { errorName, args = [] } = decodeErrorResult({ abi: ERROR_ABI, data: data as `0x${string}` });
    return `${errorName}(${args.map(String).join(', ')})`.slice(0, MESSAGE_CHARACTERS_MAX);
  } catch {
    return `The contract rejected the call with ${data.slice(0, 74)}.`;
  }
}
