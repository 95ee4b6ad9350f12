import {
  ACTIVITY_TYPES,
  type ActivityRecord,
  fromHexText,
  fromUuidText,
  isJsonObject,
  type TokenRecord,
  VERIFICATION_STATUSES,
} from '@playline/contracts';
import { z } from 'zod';
import { DECIMALS_MAX } from '../rows.ts';
import { DETAILS, toStoredDetails } from './details.ts';
import { address, hash, type Parsed, requiredChain, text, timestamp, toErrors, uint64, uuid } from './fields.ts';

export interface ImportContext {
  /** The required chain name. null accepts any chain. */
  readonly chain: string | null;
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
    chain: requiredChain(chain),
    type: z.enum(ACTIVITY_TYPES),
    indexed_at: timestamp(),
    blockchain_metadata: metadata.nullable(),
  });

/** Skips the details if the type is invalid, because the type already has an error. */
function parseDetails(line: unknown) {
  if (!isJsonObject(line)) return null;
  const type = ACTIVITY_TYPES.find((known) => known === line.type);
  return type === undefined ? null : DETAILS[type].safeParse(line.details, { reportInput: true });
}

/** Parses imported activities. As in the API, but `chain` is the chain's name, and there is no `updated_at`. */
export function createParseActivity({ chain, traceId }: ImportContext): (line: unknown) => Parsed<ActivityRecord> {
  const shape = shapeOf(chain);
  return (line) => {
    const parsed = shape.safeParse(line, { reportInput: true });
    const details = parseDetails(line);
    const isValid = parsed.success && details?.success === true;
    if (!isValid) {
      const errors = toErrors(parsed.error?.issues ?? []);
      return { ok: false, errors: [...errors, ...toErrors(details?.error?.issues ?? [], ['details'])] };
    }
    const stored = toStoredDetails(details.data);
    if (stored === null)
      return { ok: false, errors: [{ code: 'INVALID_VALUE', field: 'details', message: 'is longer than 64 KiB' }] };
    const { id, chain: name, type, indexed_at: indexedAt, blockchain_metadata: metadata } = parsed.data;
    const record: ActivityRecord = {
      chain: name,
      id: fromUuidText(id),
      type,
      contractAddress: fromHexText(stored.contractAddress),
      indexedAt,
      blockchainMetadata: metadata && {
        transactionHash: fromHexText(metadata.transaction_hash),
        blockNumber: metadata.block_number,
        transactionIndex: metadata.transaction_index,
        logIndex: metadata.log_index,
      },
      details: stored.text,
      traceId,
    };
    return { ok: true, record };
  };
}

const NAME_MAX = 256;
const URL_MAX = 2_048;

const tokenShapeOf = (chain: string | null) =>
  z.object({
    chain: requiredChain(chain),
    contract_address: address(),
    root_contract_address: address().nullable(),
    symbol: text(NAME_MAX).nullable(),
    decimals: z.int().min(0).max(DECIMALS_MAX).nullable(),
    image_url: text(URL_MAX).nullable(),
    name: text(NAME_MAX).nullable(),
    verification_status: z.enum(VERIFICATION_STATUSES),
    is_canonical: z.boolean(),
    root_chain_id: text(NAME_MAX).nullable(),
    bridge_used: text(NAME_MAX).nullable(),
  });

/** Parses imported tokens, like `createParseActivity`. */
export function createParseToken({ chain, traceId }: ImportContext): (line: unknown) => Parsed<TokenRecord> {
  const shape = tokenShapeOf(chain);
  return (line) => {
    const parsed = shape.safeParse(line, { reportInput: true });
    if (!parsed.success) return { ok: false, errors: toErrors(parsed.error.issues) };
    const token = parsed.data;
    const root = token.root_contract_address;
    const record: TokenRecord = {
      chain: token.chain,
      contractAddress: fromHexText(token.contract_address),
      rootContractAddress: root === null ? null : fromHexText(root),
      symbol: token.symbol,
      decimals: token.decimals,
      imageUrl: token.image_url,
      name: token.name,
      verificationStatus: token.verification_status,
      isCanonical: token.is_canonical,
      rootChainId: token.root_chain_id,
      bridgeUsed: token.bridge_used,
      traceId,
    };
    return { ok: true, record };
  };
}
