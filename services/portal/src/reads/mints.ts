import type { MintStatus } from '@playline/contracts';
import { type QueryOptions, type QueryRows, quoteText } from '@playline/stores';
import { msOf, queryView, readPages, toPage } from './query-view.ts';

export interface MintSearch {
  readonly environmentId: string;
  /** Epoch milliseconds: only what was asked for since. */
  readonly sinceMs: number;
  /** '' for any. */
  readonly status: '' | MintStatus;
  /** Where the page in front ended. */
  readonly before?: MintPosition;
  /** `MINTS_SHOWN_MAX` when absent. */
  readonly mintsMax?: number;
}

/** An asset among those of an environment, by when it was asked for; one id may stand in several collections. */
export interface MintPosition {
  readonly requestedMs: number;
  readonly referenceId: string;
  readonly chain: string;
  readonly contractAddress: string;
}

/** An asset that was asked to be minted, as it stands now; times in epoch milliseconds. */
export interface MintLine extends MintPosition {
  readonly changedMs: number;
  readonly signerAddress: string;
  readonly ownerAddress: string;
  /** Null while the contract has not chosen one. */
  readonly tokenId: string | null;
  readonly amount: string | null;
  readonly status: string;
  /** How far a pending one is. */
  readonly stage: string;
  /** Why it waits. */
  readonly reason: string | null;
  /** Why it failed. */
  readonly error: string | null;
  readonly transactionHash: string | null;
  readonly traceId: string;
}

export const MINTS_SHOWN_MAX = 200;

/** The newest first. */
export function readMints(query: QueryRows, question: MintSearch, options?: QueryOptions): Promise<MintLine[]> {
  const { environmentId, sinceMs, status, before, mintsMax = MINTS_SHOWN_MAX } = question;
  return queryView<MintLine>(
    query,
    {
      view: 'portal_mints',
      args: { environment: environmentId, since: sinceMs, status },
      columns: [
        ...['chain', 'contract_address', 'reference_id', msOf('requested_at'), msOf('changed_at'), 'signer_address'],
        ...['owner_address', 'token_id', 'amount', 'status', 'stage', 'reason', 'error', 'transaction', 'trace_id'],
      ],
      tail: `${before === undefined ? '' : behind(before)} ORDER BY requested_at DESC, reference_id DESC, chain DESC, contract_address DESC`,
      rowsMax: mintsMax,
      toRow: toMintLine,
    },
    options,
  );
}

const behind = ({ requestedMs, referenceId, chain, contractAddress }: MintPosition) =>
  `WHERE (${msOf('requested_at')}, reference_id, chain, contract_address) < (${Math.trunc(requestedMs)}, ${[referenceId, chain, contractAddress].map(quoteText).join(', ')})`;

/** Of an environment all of the span are read with each question: few questions for many. */
const MINTS_PER_QUERY = 10_000;

/**
 * Mints of a question, the newest first, a page of them at a time.
 * @param mints `PortalReads.mints` @param max so many at most
 * @returns where it ended, when there may be more
 */
export function readManyMints(
  mints: (question: MintSearch) => Promise<readonly MintLine[]>,
  question: MintSearch,
  max: number,
): AsyncGenerator<readonly MintLine[], MintPosition | null> {
  return readPages<MintLine, MintPosition>(
    async (mintsMax, before) => toPage(await mints({ ...question, mintsMax, ...(before && { before }) }), mintsMax),
    { after: question.before, linesMax: max, perQuery: MINTS_PER_QUERY },
  );
}

/** Whether an address could mint with a collection, as mints tell it. */
export interface MintSigner {
  readonly chain: string;
  readonly contractAddress: string;
  readonly signerAddress: string;
  /** Epoch milliseconds: when a mint of it was last ready or done, for which the contract must give it the role; null: never. */
  readonly heldMs: number | null;
  /** Assets that wait now, since when the first of them, and why the last one. */
  readonly waiting: number;
  readonly waitsMs: number;
  readonly why: string;
}

/** Of each collection and signer that anything was asked of since. */
export function readMintSigners(
  query: QueryRows,
  { environmentId, sinceMs }: Pick<MintSearch, 'environmentId' | 'sinceMs'>,
  options?: QueryOptions,
) {
  return queryView<MintSigner>(
    query,
    {
      view: 'portal_mint_signers',
      args: { environment: environmentId, since: sinceMs },
      columns: [
        ...['chain', 'contract_address', 'signer_address', msOf('held_at'), 'waiting', msOf('waits_at'), 'why'],
      ],
      tail: 'ORDER BY chain, contract_address, held_at DESC, signer_address',
      rowsMax: 5_000,
      toRow: ([chain, contract, signer, held, waiting, waits, why]) => ({
        chain: String(chain),
        contractAddress: String(contract),
        signerAddress: String(signer),
        heldMs: Number(held) > 0 ? Number(held) : null,
        waiting: Number(waiting),
        waitsMs: Number(waits),
        why: String(why),
      }),
    },
    options,
  );
}

const orNull = (value: unknown) => (value == null ? null : String(value));

function toMintLine(values: readonly unknown[]): MintLine {
  const [chain, contract, reference, requested, changed, signer, owner, tokenId, amount, ...rest] = values;
  const [status, stage, reason, error, transaction, trace] = rest;
  return {
    chain: String(chain),
    contractAddress: String(contract),
    referenceId: String(reference),
    requestedMs: Number(requested),
    changedMs: Number(changed),
    signerAddress: String(signer),
    ownerAddress: String(owner),
    tokenId: orNull(tokenId),
    amount: orNull(amount),
    status: String(status),
    stage: String(stage),
    reason: orNull(reason),
    error: orNull(error),
    transactionHash: orNull(transaction),
    traceId: String(trace),
  };
}
