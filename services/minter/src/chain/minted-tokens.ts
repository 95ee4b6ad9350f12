import type { CarriedAsset } from '@playline/contracts';
import { decodeAbiParameters } from 'viem/utils';
import type { EventLog, MintReceipt } from '../ports.ts';

/** A token that an event tells of. */
export interface MintedToken {
  /** Lower case. */
  readonly owner: string;
  /** Decimal digits. */
  readonly tokenId: string;
  /** Decimal digits. */
  readonly amount: string;
  readonly logIndex: number;
  /** Which one of its event, from 0. */
  readonly item: number;
}

/** `keccak256` of Transfer(address,address,uint256), TransferSingle and TransferBatch of ERC-1155. */
export const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
export const TRANSFER_SINGLE = '0xc3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62';
export const TRANSFER_BATCH = '0x4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb';
const NOBODY = `0x${'0'.repeat(64)}`;
const ONE = [{ type: 'uint256' }, { type: 'uint256' }] as const;
const MANY = [{ type: 'uint256[]' }, { type: 'uint256[]' }] as const;

/** Tokens that a transaction has made in a contract, in the order of the chain. @param contract lower case */
export function mintedTokensOf({ logs }: Pick<MintReceipt, 'logs'>, contract: string): MintedToken[] {
  return logs.filter(({ address }) => address === contract).flatMap(tokensOf);
}

function tokensOf({ topics, data, logIndex }: EventLog): MintedToken[] {
  const [event, first, second, third] = topics;
  if (event === TRANSFER && topics.length === 4 && first === NOBODY) {
    const tokenId = BigInt(third!).toString();
    return [{ owner: toOwner(second!), tokenId, amount: '1', logIndex, item: 0 }];
  }
  const isOfMany = event === TRANSFER_BATCH;
  if ((!isOfMany && event !== TRANSFER_SINGLE) || topics.length !== 4 || second !== NOBODY) return [];
  const given = data as `0x${string}`;
  const owner = toOwner(third!);
  if (!isOfMany) {
    const [id, value] = decodeAbiParameters(ONE, given);
    return [{ owner, tokenId: id.toString(), amount: value.toString(), logIndex, item: 0 }];
  }
  const [ids, values] = decodeAbiParameters(MANY, given);
  return ids.map((id, item) => ({ owner, tokenId: id.toString(), amount: String(values[item]), logIndex, item }));
}

const toOwner = (topic: string) => `0x${topic.slice(26)}`;

/**
 * Which token each asset of a transaction has become: by position, since token ids may repeat and a contract may choose
 * them. An asset that no token fits has none.
 */
export function matchTokens(
  assets: readonly CarriedAsset[],
  tokens: readonly MintedToken[],
): readonly (MintedToken | null)[] {
  let next = 0;
  return assets.map((asset) => {
    for (let at = next; at < tokens.length; at++) {
      if (!fits(asset, tokens[at]!)) continue;
      next = at + 1;
      return tokens[at]!;
    }
    return null;
  });
}

function fits({ ownerAddress, tokenId, amount }: CarriedAsset, token: MintedToken): boolean {
  return (
    token.owner === `0x${ownerAddress.toString('hex')}` &&
    (tokenId === null || tokenId === token.tokenId) &&
    (amount ?? '1') === token.amount
  );
}
