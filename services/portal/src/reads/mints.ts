import type { MintStatus } from '@playline/contracts';
import { quoteText } from '@playline/stores';
import {
  millis,
  millisOrNull,
  msOf,
  number,
  orNull,
  type QueryView,
  type Row,
  readPages,
  text,
  toPage,
} from './query-view.ts';

export interface MintSearch {
  readonly environmentId: string;
  /** Earliest request time in epoch milliseconds. */
  readonly sinceMs: number;
  /** Empty for any status. */
  readonly status: '' | MintStatus;
  readonly before?: MintPosition | undefined;
  readonly mintsMax: number;
}

const MINT_COLUMNS = {
  chain: text('chain'),
  contractAddress: text('contract_address'),
  referenceId: text('reference_id'),
  requestedMs: millis('requested_at'),
  changedMs: millis('changed_at'),
  signerAddress: text('signer_address'),
  ownerAddress: text('owner_address'),
  // Null until the contract assigns a token id.
  tokenId: orNull(text('token_id')),
  amount: orNull(text('amount')),
  status: text('status'),
  stage: text('stage'),
  reason: orNull(text('reason')),
  error: orNull(text('error')),
  transactionHash: orNull(text('transaction')),
  traceId: text('trace_id'),
};

/** The current state of a mint request. Times are in epoch milliseconds. */
export type MintLine = Row<typeof MINT_COLUMNS>;
/** Includes the collection, because several collections can use the same reference id. */
export type MintPosition = Pick<MintLine, 'requestedMs' | 'referenceId' | 'chain' | 'contractAddress'>;

export function readMints(queryView: QueryView, search: MintSearch): Promise<MintLine[]> {
  const { environmentId, sinceMs, status, before, mintsMax } = search;
  const order = 'ORDER BY requested_at DESC, reference_id DESC, chain DESC, contract_address DESC';
  return queryView({
    view: 'portal_mints',
    args: { environment: environmentId, since: sinceMs, status },
    columns: MINT_COLUMNS,
    tail: `${before === undefined ? '' : toCondition(before)} ${order}`,
    rowsMax: mintsMax,
  });
}

function toCondition({ requestedMs, referenceId, chain, contractAddress }: MintPosition): string {
  const values = [Math.trunc(requestedMs), ...[referenceId, chain, contractAddress].map(quoteText)];
  return `WHERE (${msOf('requested_at')}, reference_id, chain, contract_address) < (${values.join(', ')})`;
}

/** Each query reads all mints in the time range, so few large queries are cheaper than many small ones. */
const MINTS_PER_QUERY = 10_000;

/** Yields pages of mints, newest first. @returns the position at which the result was truncated, or null */
export function readManyMints(
  mints: (search: MintSearch) => Promise<readonly MintLine[]>,
  search: Omit<MintSearch, 'mintsMax'>,
  max: number,
): AsyncGenerator<readonly MintLine[], MintPosition | null> {
  return readPages<MintLine, MintPosition>(
    async (mintsMax, before) => toPage(await mints({ ...search, mintsMax, before }), mintsMax),
    { after: search.before, linesMax: max, perQuery: MINTS_PER_QUERY },
  );
}

const SIGNER_COLUMNS = {
  chain: text('chain'),
  contractAddress: text('contract_address'),
  signerAddress: text('signer_address'),
  // Time of the last mint that proves that the signer has the minter role; null if there is none.
  roleProvenMs: millisOrNull('held_at'),
  // Number of waiting assets, the time since which the oldest has waited, and the latest reason.
  waiting: number('waiting'),
  waitingSinceMs: millis('waits_at'),
  reason: text('why'),
};

/** Whether a signer can mint in a collection, derived from its mint requests. */
export type MintSigner = Row<typeof SIGNER_COLUMNS>;

/** Returns every combination of collection and signer that has a mint request since `sinceMs`. */
export function readMintSigners(
  queryView: QueryView,
  { environmentId, sinceMs }: Pick<MintSearch, 'environmentId' | 'sinceMs'>,
): Promise<MintSigner[]> {
  return queryView({
    view: 'portal_mint_signers',
    args: { environment: environmentId, since: sinceMs },
    columns: SIGNER_COLUMNS,
    tail: 'ORDER BY chain, contract_address, held_at DESC, signer_address',
    rowsMax: 5_000,
  });
}
