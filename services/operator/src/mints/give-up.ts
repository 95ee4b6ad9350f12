import type { AuditEntry, Author } from '@playline/access-keys';
import type { MintStateRecord } from '@playline/contracts';
import { type SignerLogSources, type SignerName, withSignerLog } from './signer-log.ts';

export interface GiveUpParts extends SignerLogSources {
  /** Resolves when the entry stands. */
  readonly audit: (entry: AuditEntry) => Promise<void>;
  readonly author: Author;
  readonly wallClockMs: () => number;
}

/** Which assets of a signer are given up. */
export interface GiveUpOrder extends SignerName {
  /** One of them, as the interface names it; null: all that are pending. */
  readonly only: { readonly contractAddress: string; readonly referenceId: string } | null;
  /** For people, also those who asked for the assets. */
  readonly reason: string;
}

/** What became of the assets that were pending. */
export interface GivenUp {
  /** Have failed now. */
  readonly ended: readonly MintStateRecord[];
  /** A signed transaction carries them, which may get into a block at any time. */
  readonly carried: readonly MintStateRecord[];
}

const toHex = (bytes: Buffer) => `0x${bytes.toString('hex')}`;

/**
 * Ends assets that are pending as failed, so that their reference ids are free again. One that a signed transaction carries
 * is left alone: the bytes are good until the nonce is spent behind the horizon, whatever became of the key, and the reference
 * id would have two tokens. Of all others the log says that nothing signed can still mint them: the minter writes a nonce into
 * the state in one step with the signed bytes, and takes it out only when the nonce is spent for good.
 * The audit has its entry first.
 * @throws Error when nothing fits, or the minter took over meanwhile; UnreachableError
 */
export function giveUpMints(parts: GiveUpParts, order: GiveUpOrder): Promise<GivenUp> {
  return withSignerLog(parts, order, async ({ states, write }) => {
    const pending = states.filter((state) => state.status === 'pending' && isMeantBy(order, state));
    const carried = pending.filter(({ nonce }) => nonce !== null);
    const changedAt = parts.wallClockMs();
    const error = `Given up by the operator: ${order.reason}`;
    const ended = pending
      .filter(({ nonce }) => nonce === null)
      .map((state): MintStateRecord => {
        const failed = { status: 'failed', stage: 'settled', reason: null, error } as const;
        return { ...state, ...failed, revision: state.revision + 1, changedAt };
      });
    for (const entry of toEntries(parts.author, order, ended)) await parts.audit(entry);
    if (ended.length > 0) await write(ended);
    return { ended, carried };
  });
}

const isMeantBy = ({ only }: GiveUpOrder, { contractAddress, referenceId }: MintStateRecord) =>
  only === null || (only.referenceId === referenceId && only.contractAddress === toHex(contractAddress));

/** One for each environment that had asked for any. */
function toEntries({ changedBy, requestId }: Author, order: GiveUpOrder, ended: readonly MintStateRecord[]) {
  const environments = new Map<string, MintStateRecord[]>();
  for (const state of ended)
    environments.set(state.environmentId, [...(environments.get(state.environmentId) ?? []), state]);
  const { chain, signer, reason, only } = order;
  return [...environments].map(([environmentId, states]): AuditEntry => {
    const [{ projectId, attemptId }] = states as [MintStateRecord];
    const object = only === null ? signer : attemptId.toString('hex');
    return {
      ...{ actor: changedBy, action: 'mint.give-up', object, projectId, environmentId, address: '', requestId },
      detail: { chain, signer, assets: states.length, reason },
    };
  });
}
