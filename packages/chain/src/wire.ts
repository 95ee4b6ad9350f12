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
  return {
    id: row.id,
    chain: { id: chain.id, name: chain.name },
    type: row.type,
    details: JSON.parse(row.details) as Record<string, unknown>,
    ...toPlaceJson(row),
  };
}

function toPlaceJson({ updatedAt, indexedAt, blockchainMetadata: metadata }: ActivityRow) {
  return {
    updated_at: toTimestamp(updatedAt),
    indexed_at: toTimestamp(indexedAt),
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

/** JSON of the members behind `chain`, without braces: what is written to the feeds. `details` are passed on as text. */
export function toMembersText(row: ActivityRow): string {
  return `"type":${JSON.stringify(row.type)},"details":${row.details},${JSON.stringify(toPlaceJson(row)).slice(1, -1)}`;
}

/** A row as readers get it. */
export function toShownActivity(row: ActivityRow): ShownActivity {
  const { id, updatedAt, partition } = row;
  return { id, updatedAt, partition, members: Buffer.from(toMembersText(row)) };
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
