import type { MintStatus } from '@playline/contracts';
import { type QueryOptions, type QueryRows, quoteText } from '@playline/stores';
import { millis, millisOrNull, msOf, number, orNull, queryView, readPages, text, toPage } from './query-view.ts';

export interface MintSearch {
  readonly environmentId: string;
  /** Only mints requested since, in epoch milliseconds. */
  readonly sinceMs: number;
  /** '' for any. */
  readonly status: '' | MintStatus;
  readonly before?: MintPosition | undefined;
  /** `MINTS_SHOWN_MAX` when absent. */
  readonly mintsMax?: number;
}

/** Position of a mint in an environment. One reference id may occur in several collections. */
export interface MintPosition {
  readonly requestedMs: number;
  readonly referenceId: string;
  readonly chain: string;
  readonly contractAddress: string;
}

/** The current state of a requested asset; times in epoch milliseconds. */
export interface MintLine extends MintPosition {
  readonly changedMs: number;
  readonly signerAddress: string;
  readonly ownerAddress: string;
  /** Null until the contract has chosen one. */
  readonly tokenId: string | null;
  readonly amount: string | null;
  readonly status: string;
  readonly stage: string;
  /** Why it waits. */
  readonly reason: string | null;
  /** Why it failed. */
  readonly error: string | null;
  readonly transactionHash: string | null;
  readonly traceId: string;
}

export const MINTS_SHOWN_MAX = 200;

/** Newest first. */
export function readMints(query: QueryRows, search: MintSearch, options?: QueryOptions): Promise<MintLine[]> {
  const { environmentId, sinceMs, status, before, mintsMax = MINTS_SHOWN_MAX } = search;
  const order = 'ORDER BY requested_at DESC, reference_id DESC, chain DESC, contract_address DESC';
  const viewQuery = {
    view: 'portal_mints',
    args: { environment: environmentId, since: sinceMs, status },
    columns: {
      chain: text('chain'),
      contractAddress: text('contract_address'),
      referenceId: text('reference_id'),
      requestedMs: millis('requested_at'),
      changedMs: millis('changed_at'),
      signerAddress: text('signer_address'),
      ownerAddress: text('owner_address'),
      tokenId: orNull(text('token_id')),
      amount: orNull(text('amount')),
      status: text('status'),
      stage: text('stage'),
      reason: orNull(text('reason')),
      error: orNull(text('error')),
      transactionHash: orNull(text('transaction')),
      traceId: text('trace_id'),
    },
    tail: `${before === undefined ? '' : toCondition(before)} ${order}`,
    rowsMax: mintsMax,
  };
  return queryView<MintLine>(query, viewQuery, options);
}

function toCondition({ requestedMs, referenceId, chain, contractAddress }: MintPosition): string {
  const values = [Math.trunc(requestedMs), ...[referenceId, chain, contractAddress].map(quoteText)];
  return `WHERE (${msOf('requested_at')}, reference_id, chain, contract_address) < (${values.join(', ')})`;
}

/** Every query reads all mints of the span, so few large queries are cheaper. */
const MINTS_PER_QUERY = 10_000;

/** Mints of a search, newest first, one page at a time. @returns where the result was cut off */
export function readManyMints(
  mints: (search: MintSearch) => Promise<readonly MintLine[]>,
  search: MintSearch,
  max: number,
): AsyncGenerator<readonly MintLine[], MintPosition | null> {
  return readPages<MintLine, MintPosition>(
    async (mintsMax, before) => toPage(await mints({ ...search, mintsMax, before }), mintsMax),
    { after: search.before, linesMax: max, perQuery: MINTS_PER_QUERY },
  );
}

/** What mints show about an address: whether it can mint with a collection. */
export interface MintSigner {
  readonly chain: string;
  readonly contractAddress: string;
  readonly signerAddress: string;
  /** When a mint was last ready or done, which requires the role; null for never. */
  readonly heldMs: number | null;
  /** Assets that wait, since when, and the reason of the last one. */
  readonly waiting: number;
  readonly waitsMs: number;
  readonly why: string;
}

/** Every collection and signer with a mint request since `sinceMs`. */
export function readMintSigners(
  query: QueryRows,
  { environmentId, sinceMs }: Pick<MintSearch, 'environmentId' | 'sinceMs'>,
  options?: QueryOptions,
) {
  const viewQuery = {
    view: 'portal_mint_signers',
    args: { environment: environmentId, since: sinceMs },
    columns: {
      chain: text('chain'),
      contractAddress: text('contract_address'),
      signerAddress: text('signer_address'),
      heldMs: millisOrNull('held_at'),
      waiting: number('waiting'),
      waitsMs: millis('waits_at'),
      why: text('why'),
    },
    tail: 'ORDER BY chain, contract_address, held_at DESC, signer_address',
    rowsMax: 5_000,
  };
  return queryView<MintSigner>(query, viewQuery, options);
}
