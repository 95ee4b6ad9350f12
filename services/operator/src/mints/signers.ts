/** `mints signers`: what each signer has pending, and what blocks it. */
import type { SignableKeyRecord } from '@playline/access-keys';
import type { MintState } from '@playline/mints';

export interface SignerLaneState {
  /** Null for a key that was never used. */
  readonly chain: string | null;
  readonly signer: string;
  /** Null without a record of this address. */
  readonly keyName: string | null;
  readonly keyState: string | null;
  readonly pending: number;
  /** Assets that wait for a person, by reason. */
  readonly waiting: readonly { readonly reason: string; readonly count: number }[];
  /** Nonces that are not finally spent, ascending. */
  readonly openNonces: readonly number[];
  /** Epoch milliseconds. */
  readonly oldestPendingAt: number | null;
  readonly succeeded: number;
  readonly failed: number;
}

/** @param states of all requests, in any order. @returns blocked signers first, then by chain and signer */
export async function readSigners(
  states: AsyncIterable<readonly MintState[]>,
  keys: readonly SignableKeyRecord[],
): Promise<readonly SignerLaneState[]> {
  const lanes = new Map<string, ReturnType<typeof newLane>>();
  for await (const piece of states)
    for (const { chain, signer, status, stage, nonce, reason, requestedAt } of piece) {
      const name = `${chain} ${signer}`;
      const lane = lanes.get(name) ?? newLane(chain, signer);
      lanes.set(name, lane);
      lane[status]++;
      if (status !== 'pending') continue;
      lane.oldestPendingAt = Math.min(lane.oldestPendingAt ?? requestedAt, requestedAt);
      if (nonce !== null) lane.nonces.add(nonce);
      if (stage === 'waiting' && reason !== null) lane.reasons.set(reason, (lane.reasons.get(reason) ?? 0) + 1);
    }
  const byAddress = new Map(keys.map((key) => [key.address, key]));
  const used = new Set([...lanes.values()].map(({ signer }) => signer));
  const idle = keys.filter(({ address }) => !used.has(address)).map(({ address }) => newLane(null, address));
  const all = [...lanes.values(), ...idle].map(({ reasons, nonces, ...lane }) => ({
    ...lane,
    keyName: byAddress.get(lane.signer)?.name ?? null,
    keyState: byAddress.get(lane.signer)?.state ?? null,
    openNonces: [...nonces].sort((one, other) => one - other),
    waiting: [...reasons].map(([reason, count]) => ({ reason, count })).sort((one, other) => other.count - one.count),
  }));
  return all.sort(compareLanes);
}

const newLane = (chain: string | null, signer: string) => ({
  chain,
  signer,
  pending: 0,
  succeeded: 0,
  failed: 0,
  oldestPendingAt: null as number | null,
  reasons: new Map<string, number>(),
  nonces: new Set<number>(),
});

function compareLanes(one: SignerLaneState, other: SignerLaneState): number {
  const rank = ({ waiting, pending }: SignerLaneState) => (waiting.length > 0 ? 0 : pending > 0 ? 1 : 2);
  const nameOf = ({ chain, signer }: SignerLaneState) => `${chain ?? '~'} ${signer}`;
  return rank(one) - rank(other) || (nameOf(one) < nameOf(other) ? -1 : 1);
}

/** One line, and another for each blocker. */
export function toSignerLines(lane: SignerLaneState): readonly string[] {
  const { chain, signer, keyName, keyState, pending, waiting, openNonces, oldestPendingAt, succeeded, failed } = lane;
  const key = keyName === null ? 'no record of this key' : `key "${keyName}", ${keyState}`;
  const parts = [
    `${pending} pending`,
    oldestPendingAt === null ? '' : `oldest of ${new Date(oldestPendingAt).toISOString()}`,
    openNonces.length === 0 ? '' : `nonces ${openNonces.join(', ')} open`,
    `${succeeded} succeeded`,
    `${failed} failed`,
  ];
  const head = `${chain ?? 'no chain yet'}  ${signer}  (${key}): ${parts.filter((part) => part !== '').join(', ')}`;
  const count = (assets: number) => `${assets} asset${assets === 1 ? '' : 's'}`;
  return [head, ...waiting.map(({ reason, count: assets }) => `  ${count(assets)} waiting: ${reason}`)];
}
