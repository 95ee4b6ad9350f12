import type { SignableKeyRecord } from '@playline/access-keys';
import type { MintState } from '@playline/mints';

/** One signer on one chain: its minter handles one transaction after the other. */
export interface SignerLaneState {
  /** Null for a key that was never used. */
  readonly chain: string | null;
  readonly signer: string;
  /** Name of the key; null when there is no record of this address. */
  readonly keyName: string | null;
  readonly keyState: string | null;
  readonly pending: number;
  /** Of these, the assets that wait for something that a person must fix, by reason. */
  readonly waiting: readonly { readonly reason: string; readonly count: number }[];
  /** Nonces with assets that are not finally spent, ascending. */
  readonly openNonces: readonly number[];
  /** Epoch milliseconds of the oldest request that is not settled. */
  readonly oldestPendingAt: number | null;
  readonly succeeded: number;
  readonly failed: number;
}

interface Counted {
  readonly chain: string;
  readonly signer: string;
  pending: number;
  succeeded: number;
  failed: number;
  oldestPendingAt: number | null;
  readonly reasons: Map<string, number>;
  readonly nonces: Set<number>;
}

function count(lane: Counted, { status, stage, nonce, reason, requestedAt }: MintState): void {
  lane[status]++;
  if (status !== 'pending') return;
  lane.oldestPendingAt = Math.min(lane.oldestPendingAt ?? requestedAt, requestedAt);
  if (nonce !== null) lane.nonces.add(nonce);
  if (stage === 'waiting' && reason !== null) lane.reasons.set(reason, (lane.reasons.get(reason) ?? 0) + 1);
}

/**
 * Summarises the progress of every signer, and what it waits for. Memory: a few hundred bytes per signer.
 * @param states of all requests, in pieces and in any order
 * @returns waiting signers first, then by chain and signer
 */
export async function readSigners(
  states: AsyncIterable<readonly MintState[]>,
  keys: readonly SignableKeyRecord[],
): Promise<readonly SignerLaneState[]> {
  const lanes = new Map<string, Counted>();
  for await (const piece of states)
    for (const state of piece) {
      const { chain, signer } = state;
      const name = `${chain} ${signer}`;
      const lane = lanes.get(name) ?? {
        chain,
        signer,
        pending: 0,
        succeeded: 0,
        failed: 0,
        oldestPendingAt: null,
        reasons: new Map<string, number>(),
        nonces: new Set<number>(),
      };
      lanes.set(name, lane);
      count(lane, state);
    }
  const byAddress = new Map(keys.map((key) => [key.address, key]));
  const ofKey = (address: string) => ({
    keyName: byAddress.get(address)?.name ?? null,
    keyState: byAddress.get(address)?.state ?? null,
  });
  const used = new Set([...lanes.values()].map(({ signer }) => signer));
  const idle = keys
    .filter(({ address }) => !used.has(address))
    .map(({ address }) => ({
      chain: null,
      signer: address,
      ...ofKey(address),
      pending: 0,
      succeeded: 0,
      failed: 0,
      waiting: [],
      openNonces: [],
      oldestPendingAt: null,
    }));
  const busy = [...lanes.values()].map(({ reasons, nonces, ...lane }) => ({
    ...lane,
    ...ofKey(lane.signer),
    openNonces: [...nonces].sort((one, other) => one - other),
    waiting: [...reasons].map(([reason, count]) => ({ reason, count })).sort((one, other) => other.count - one.count),
  }));
  return [...busy, ...idle].sort(compareLanes);
}

function compareLanes(one: SignerLaneState, other: SignerLaneState): number {
  const rank = ({ waiting, pending }: SignerLaneState) => (waiting.length > 0 ? 0 : pending > 0 ? 1 : 2);
  const nameOf = ({ chain, signer }: SignerLaneState) => `${chain ?? '~'} ${signer}`;
  return rank(one) - rank(other) || (nameOf(one) < nameOf(other) ? -1 : 1);
}

const plural = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`;

/** One line, and another for each reason to wait. */
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
  return [head, ...waiting.map(({ reason, count }) => `  ${plural(count, 'asset')} waiting: ${reason}`)];
}
