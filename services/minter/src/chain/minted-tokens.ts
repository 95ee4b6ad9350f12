import type { CarriedAsset } from '@playline/contracts';
import { decodeAbiParameters } from 'viem/utils';
import type { EventLog, MintReceipt } from '../ports.ts';

/** A token that an event reports as minted. */
export interface MintedToken {
  /** Lower case. */
  readonly owner: string;
  /** Decimal digits. */
  readonly tokenId: string;
  /** Decimal digits. */
  readonly amount: string;
  readonly logIndex: number;
  /** Position within the event, from 0. */
  readonly item: number;
}

/** `keccak256` of Transfer(address,address,uint256), TransferSingle and TransferBatch of ERC-1155. */
export const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
export const TRANSFER_SINGLE = '0xc3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62';
export const TRANSFER_BATCH = '0x4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb';
/** ERC-2309 `ConsecutiveTransfer(uint256,uint256,address,address)`: all tokens from one id to another. */
export const CONSECUTIVE_TRANSFER = '0xdeaa91b6123d068f5821d0fb0678463d1a8a6079fe8af5de3ce5e896dcf9133d';
/** One such event can claim any number of tokens for the same gas; our transactions never mint this many. */
const CONSECUTIVE_MAX = 1_000;
const NOBODY = `0x${'0'.repeat(64)}`;
const ONE = [{ type: 'uint256' }, { type: 'uint256' }] as const;
const MANY = [{ type: 'uint256[]' }, { type: 'uint256[]' }] as const;

/** Tokens that a transaction minted in a contract, in the order of its events. @param contract lower case */
export function mintedTokensOf({ logs }: Pick<MintReceipt, 'logs'>, contract: string): MintedToken[] {
  return logs.filter(({ address }) => address === contract).flatMap(readEvent);
}

/** An event that cannot be decoded is ignored: a contract may emit anything. */
function readEvent(log: EventLog): MintedToken[] {
  try {
    return tokensOf(log);
  } catch {
    return [];
  }
}

function tokensOf(log: EventLog): MintedToken[] {
  const { topics, data, logIndex } = log;
  const [event, first, second, third] = topics;
  if (event === CONSECUTIVE_TRANSFER) return readConsecutive(log);
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

function readConsecutive({ topics, data, logIndex }: EventLog): MintedToken[] {
  const [, first, from, to] = topics;
  if (topics.length !== 4 || from !== NOBODY) return [];
  const start = BigInt(first!);
  const [end] = decodeAbiParameters([{ type: 'uint256' }], data as `0x${string}`);
  const count = end - start + 1n;
  const length = count > BigInt(CONSECUTIVE_MAX) ? CONSECUTIVE_MAX : Math.max(0, Number(count));
  const owner = toOwner(to!);
  return Array.from({ length }, (_, item) => {
    const tokenId = (start + BigInt(item)).toString();
    return { owner, tokenId, amount: '1', logIndex, item };
  });
}

const toOwner = (topic: string) => `0x${topic.slice(26)}`;

/**
 * Finds the token of each asset of a transaction: the first unmatched token with the same owner, token id and amount.
 * Equal assets are matched by position, since a contract may emit its events in any order. An asset without a matching
 * token gets null.
 */
export function matchTokens(
  assets: readonly CarriedAsset[],
  tokens: readonly MintedToken[],
): readonly (MintedToken | null)[] {
  const left = [...tokens];
  return assets.map((asset) => {
    const at = left.findIndex((token) => fits(asset, token));
    return at === -1 ? null : left.splice(at, 1)[0]!;
  });
}

function fits({ ownerAddress, tokenId, amount }: CarriedAsset, token: MintedToken): boolean {
  return (
    token.owner === `0x${ownerAddress.toString('hex')}` &&
    (tokenId === null || tokenId === token.tokenId) &&
    (amount ?? '1') === token.amount
  );
}
