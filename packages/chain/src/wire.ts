import { toTimestamp } from '@playline/contracts';
import type { ActivityRow, TokenRow } from './rows.ts';
import type { ShownActivity } from './store.ts';

/** A chain as the interface shows it. */
export interface ShownChain {
  /** Identifier in the form namespace:reference. */
  readonly id: string;
  readonly name: string;
}

/** An activity as the interface shows it: an element of `result`. */
export function toActivityJson(row: ActivityRow, chain: ShownChain) {
  const { blockchainMetadata: metadata } = row;
  return {
    id: row.id,
    chain: { id: chain.id, name: chain.name },
    type: row.type,
    details: JSON.parse(row.details) as Record<string, unknown>,
    updated_at: toTimestamp(row.updatedAt),
    indexed_at: toTimestamp(row.indexedAt),
    blockchain_metadata: metadata && {
      transaction_hash: metadata.transactionHash,
      block_number: metadata.blockNumber,
      transaction_index: metadata.transactionIndex,
      log_index: metadata.logIndex,
    },
  };
}
export type ActivityJson = ReturnType<typeof toActivityJson>;

/**
 * Bytes of a page: the activities as `toActivityJson` has them, except that `details` are as they were stored, and what
 * leads on. Written into one buffer: to make text of bytes, and bytes of the text, would be most of what a page costs the
 * process.
 * @param shownChain JSON text of a `ShownChain`
 * @param leads JSON text of the member `page`
 */
export function toPageBody(rows: readonly ShownActivity[], shownChain: string, leads: string): Buffer {
  const behindId = `","chain":${shownChain},`;
  const tail = `],"page":${leads}}`;
  const around = ',{"id":"'.length + ID_CHARACTERS + Buffer.byteLength(behindId) + '}'.length;
  const size = rows.reduce((sum, { members }) => sum + around + members.length, HEAD.length + Buffer.byteLength(tail));
  const body = Buffer.allocUnsafe(size);
  let at = body.write(HEAD, 'latin1');
  for (const { id, members } of rows) {
    at += body.write(`${at === HEAD.length ? '' : ','}{"id":"${id}${behindId}`, at);
    at += members.copy(body, at);
    at += body.write('}', at, 'latin1');
  }
  at += body.write(tail, at);
  return body.subarray(0, at);
}
const HEAD = '{"result":[';
const ID_CHARACTERS = 36;

/** A row as readers get it: what is written to the feeds. */
export function toShownActivity(row: ActivityRow): ShownActivity {
  const { type, updated_at, indexed_at, blockchain_metadata } = toActivityJson(row, { id: '', name: '' });
  const behind = JSON.stringify({ updated_at, indexed_at, blockchain_metadata }).slice(1, -1);
  const members = Buffer.from(`"type":${JSON.stringify(type)},"details":${row.details},${behind}`);
  return { id: row.id, updatedAt: row.updatedAt, partition: row.partition, members };
}

/** A token as the interface shows it: the `result`. */
export function toTokenJson(row: TokenRow, chain: ShownChain) {
  return {
    chain: { id: chain.id, name: chain.name },
    contract_address: row.contractAddress,
    root_contract_address: row.rootContractAddress,
    symbol: row.symbol,
    decimals: row.decimals,
    image_url: row.imageUrl,
    name: row.name,
    verification_status: row.verificationStatus,
    updated_at: toTimestamp(row.updatedAt),
    is_canonical: row.isCanonical,
    root_chain_id: row.rootChainId,
    bridge_used: row.bridgeUsed,
  };
}
export type TokenJson = ReturnType<typeof toTokenJson>;
