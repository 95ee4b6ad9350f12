import type { AuditEntry, Author } from '@playline/access-keys';
import { type MintStateRecord, toHexText } from '@playline/contracts';
import type { MintState } from '@playline/mints';
import type { ChangedLogSources } from '../changed-log.ts';
import { changeSignerLog, type SignerName } from './signer-log.ts';

export interface GiveUpParts extends ChangedLogSources {
  /** Resolves when the entry is in the audit log. */
  readonly audit: (entry: AuditEntry) => Promise<void>;
  readonly author: Author;
  readonly wallClockMs: () => number;
}

/** Which assets of a signer to give up. */
export interface GiveUpOrder extends SignerName {
  /** A single asset, as the interface names it; null: all pending ones. */
  readonly only: Pick<MintState, 'contractAddress' | 'projectId' | 'referenceId'> | null;
  /** Shown to people, also to those who requested the assets. */
  readonly reason: string;
}

/** What was done with the pending assets. */
export interface GivenUp {
  /** These have failed now. */
  readonly ended: readonly MintStateRecord[];
  /** These have a signed transaction, which may get into a block at any time. */
  readonly carried: readonly MintStateRecord[];
}

/**
 * Fails pending assets, so that their reference ids are free again. An asset with a signed transaction is left alone:
 * the bytes stay valid until a final transaction has spent the nonce, whatever became of the key, and the reference id
 * could get two tokens. For all others the log proves that nothing signed can mint them: the minter writes the nonce
 * into the state together with the signed bytes, and removes it only when the nonce is finally spent.
 * The audit entry is written first.
 * @throws Error when a minter takes over all the time; UnreachableError
 */
export async function giveUpMints(parts: GiveUpParts, order: GiveUpOrder): Promise<GivenUp> {
  const error = `Given up by the operator: ${order.reason}`;
  const isPending = (state: MintStateRecord) => state.status === 'pending' && isMeantBy(order, state);
  const { written, states } = await changeSignerLog(parts, order, {
    decide: (all) => {
      const changedAt = parts.wallClockMs();
      return all
        .filter((state) => isPending(state) && state.nonce === null)
        .map((state): MintStateRecord => {
          const failed = { status: 'failed', stage: 'settled', reason: null, error } as const;
          return { ...state, ...failed, revision: state.revision + 1, changedAt };
        });
    },
    before: async (ended) => {
      for (const entry of toEntries(parts.author, order, ended)) await parts.audit(entry);
    },
  });
  return { ended: written, carried: states.filter((state) => isPending(state) && state.nonce !== null) };
}

const isMeantBy = ({ only }: GiveUpOrder, state: MintStateRecord) =>
  only === null ||
  (only.referenceId === state.referenceId &&
    only.projectId === state.projectId &&
    only.contractAddress === toHexText(state.contractAddress));

/** One entry for each environment that had requested any of the assets. */
function toEntries({ changedBy, requestId }: Author, order: GiveUpOrder, ended: readonly MintStateRecord[]) {
  const environments = new Map<string, MintStateRecord[]>();
  for (const state of ended)
    environments.set(state.environmentId, [...(environments.get(state.environmentId) ?? []), state]);
  const { chain, signer, reason, only } = order;
  return [...environments].map(([environmentId, states]): AuditEntry => {
    const [{ projectId, attemptId }] = states as [MintStateRecord];
    const object = only === null ? signer : attemptId.toString('hex');
    return {
      actor: changedBy,
      action: 'mint.give-up',
      object,
      projectId,
      environmentId,
      address: '',
      requestId,
      detail: { chain, signer, assets: states.length, reason },
    };
  });
}
