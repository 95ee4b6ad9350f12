import { ACTIVITY_TYPES, type ActivityRecord, fromHexText, fromUuidText, isJsonObject } from '@playline/contracts';
import { z } from 'zod';
import { DETAILS, toStoredDetails } from './details.ts';
import { hash, ownChain, type Parsed, timestamp, toErrors, uint64, uuid } from './fields.ts';

/** What applies to all lines of an import. */
export interface ImportContext {
  /** Name of the chain that every line must have; null accepts any chain. */
  readonly chain: string | null;
  /** 32 lower-case hex characters. */
  readonly traceId: string;
}

const metadata = z.object({
  transaction_hash: hash(),
  block_number: uint64(),
  transaction_index: uint64(),
  log_index: uint64().nullable(),
});
const shapeOf = (chain: string | null) =>
  z.object({
    id: uuid(),
    chain: ownChain(chain),
    type: z.enum(ACTIVITY_TYPES),
    indexed_at: timestamp(),
    blockchain_metadata: metadata.nullable(),
  });

/** Parses `details` by the type of the line. Reports no error for them when the type is invalid. */
function parseDetails(line: unknown) {
  if (!isJsonObject(line)) return null;
  const type = ACTIVITY_TYPES.find((known) => known === line.type);
  return type === undefined ? null : DETAILS[type].safeParse(line.details, { reportInput: true });
}

/**
 * Creates the parser of activities of an import. A line has the form of the interface, except that `chain` is the name
 * and `updated_at` is absent, because the log gives it. Unknown members are dropped.
 */
export function createParseActivity({ chain, traceId }: ImportContext): (line: unknown) => Parsed<ActivityRecord> {
  const shape = shapeOf(chain);
  return (line) => {
    const parsed = shape.safeParse(line, { reportInput: true });
    const details = parseDetails(line);
    const isRead = parsed.success && details?.success === true;
    if (!isRead) {
      const own = toErrors(parsed.error?.issues ?? []);
      return { ok: false, errors: [...own, ...toErrors(details?.error?.issues ?? [], ['details'])] };
    }
    const stored = toStoredDetails(details.data);
    if (stored === null)
      return { ok: false, errors: [{ code: 'INVALID_VALUE', field: 'details', message: 'is longer than 64 KiB' }] };
    const { id, chain: name, type, indexed_at: indexedAt, blockchain_metadata: place } = parsed.data;
    const record: ActivityRecord = {
      chain: name,
      id: fromUuidText(id),
      type,
      contractAddress: fromHexText(stored.contractAddress),
      indexedAt,
      blockchainMetadata: place && {
        transactionHash: fromHexText(place.transaction_hash),
        blockNumber: place.block_number,
        transactionIndex: place.transaction_index,
        logIndex: place.log_index,
      },
      details: stored.text,
      traceId,
    };
    return { ok: true, record };
  };
}
