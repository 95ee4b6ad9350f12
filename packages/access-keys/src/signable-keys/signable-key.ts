import { type SignableKeyRecord, signableKeyCodec, TOPICS } from '@playline/contracts';
import type { RecordKind } from '../records/record-log.ts';

export type { SignableKeyRecord } from '@playline/contracts';

/** Addresses whose private keys only the process that signs can open. */
export const SIGNABLE_KEYS: RecordKind<SignableKeyRecord> = {
  name: 'signable-keys',
  topic: TOPICS.signableKeys.name,
  codec: signableKeyCodec,
  idOf: ({ address }) => address,
};

/** What is shown of a key. Only the process that signs can use its sealed text. */
export type ShownSignableKey = Omit<SignableKeyRecord, 'sealed'>;

export function toShownSignableKey({ sealed: _, ...shown }: SignableKeyRecord): ShownSignableKey {
  return shown;
}

/** The key that signs for an environment, its oldest live one; undefined without one. */
export function findSigner<K extends Pick<SignableKeyRecord, 'environmentId' | 'state' | 'createdAt'>>(
  keys: readonly K[],
  environmentId: string,
): K | undefined {
  const own = keys.filter((key) => key.environmentId === environmentId && key.state === 'live');
  return own.toSorted((a, b) => a.createdAt - b.createdAt)[0];
}
