import type { QueryOptions, QueryRows } from '@playline/runtime';
import { askView, msOf } from './ask-view.ts';

export const MINT_STATUSES = ['pending', 'succeeded', 'failed'] as const;

export interface MintQuestion {
  readonly environmentId: string;
  /** Epoch milliseconds: only what was asked for since. */
  readonly sinceMs: number;
  /** '' for any. */
  readonly status: '' | (typeof MINT_STATUSES)[number];
}

/** An asset that was asked to be minted, as it stands now; times in epoch milliseconds. */
export interface MintLine {
  readonly chain: string;
  readonly contractAddress: string;
  readonly referenceId: string;
  readonly requestedMs: number;
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

/** The newest first, at most `MINTS_SHOWN_MAX`. */
export function readMints(query: QueryRows, question: MintQuestion, options?: QueryOptions): Promise<MintLine[]> {
  const { environmentId, sinceMs, status } = question;
  return askView<MintLine>(
    query,
    {
      view: 'portal_mints',
      args: { environment: environmentId, since: sinceMs, status },
      columns: [
        ...['chain', 'contract_address', 'reference_id', msOf('requested_at'), msOf('changed_at'), 'signer_address'],
        ...['owner_address', 'token_id', 'amount', 'status', 'stage', 'reason', 'error', 'transaction', 'trace_id'],
      ],
      tail: 'ORDER BY requested_at DESC, reference_id',
      rowsMax: MINTS_SHOWN_MAX,
      toRow: toMintLine,
    },
    options,
  );
}

const orNull = (value: unknown) => (value == null ? null : String(value));

function toMintLine(values: readonly unknown[]): MintLine {
  const [chain, contract, reference, requested, changed, signer, owner, tokenId, amount, ...rest] = values;
  const [status, stage, reason, error, transaction, trace] = rest;
  return {
    ...{ chain: String(chain), contractAddress: String(contract), referenceId: String(reference) },
    ...{ requestedMs: Number(requested), changedMs: Number(changed) },
    ...{ signerAddress: String(signer), ownerAddress: String(owner) },
    ...{ tokenId: orNull(tokenId), amount: orNull(amount), status: String(status), stage: String(stage) },
    ...{ reason: orNull(reason), error: orNull(error), transactionHash: orNull(transaction), traceId: String(trace) },
  };
}
