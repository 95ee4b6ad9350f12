import { toTimestamp } from '@playline/contracts';
import type { ActivityRow, TokenRow } from './rows.ts';
import type { ShownActivity } from './store.ts';

/** A chain as it appears in the API. */
export interface ShownChain {
  /** The CAIP-2 id. */
  readonly id: string;
  readonly name: string;
}

export function toActivityJson(row: ActivityRow, chain: ShownChain) {
  return {
    id: row.id,
    chain: { id: chain.id, name: chain.name },
    type: row.type,
    details: JSON.parse(row.details) as Record<string, unknown>,
    ...toTailJson(row),
  };
}

function toTailJson({ updatedAt, indexedAt, blockchainMetadata: metadata }: ActivityRow) {
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
 * Assembles a page in one buffer, with `details` as stored, because parsing them would be most of the cost.
 * @param shownChain JSON of a `ShownChain` @param pageJson JSON of the member `page`
 */
export function toPageBody(rows: readonly ShownActivity[], shownChain: string, pageJson: string): Buffer {
  const afterId = Buffer.from(`","chain":${shownChain},`);
  const tail = Buffer.from(`],"page":${pageJson}}`);
  const around = ROW_SEPARATOR.length + ID_CHARACTERS + afterId.length;
  let size = HEAD.length + END.length + tail.length;
  for (const { members } of rows) size += around + members.length;
  const body = Buffer.allocUnsafe(size);
  // The first row has no previous row to close.
  let offset = HEAD.copy(body);
  for (const { id, members } of rows) {
    if (offset === HEAD.length) offset += ROW_SEPARATOR.copy(body, offset, END.length + 1);
    else offset += ROW_SEPARATOR.copy(body, offset);
    offset += body.write(id, offset, 'latin1');
    offset += afterId.copy(body, offset);
    offset += members.copy(body, offset);
  }
  if (rows.length > 0) offset += END.copy(body, offset);
  offset += tail.copy(body, offset);
  return body.subarray(0, offset);
}
const HEAD = Buffer.from('{"result":[');
const ROW_SEPARATOR = Buffer.from('},{"id":"');
const END = Buffer.from('}');
const ID_CHARACTERS = 36;

/** Inserts `details` without parsing them. */
export function toMembersText(row: ActivityRow): string {
  return `"type":${JSON.stringify(row.type)},"details":${row.details},${JSON.stringify(toTailJson(row)).slice(1, -1)}`;
}

export function toShownActivity(row: ActivityRow): ShownActivity {
  const { id, updatedAt, partition } = row;
  return { id, updatedAt, partition, members: Buffer.from(toMembersText(row)) };
}

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
