import { type AccessKeyRecord, accessKeyCodec, TOPICS } from '@playline/contracts';
import type { RecordKind } from '../records/record-log.ts';
import type { KeyEnvironment, KeyKind } from './key-text.ts';

export type { AccessKeyRecord } from '@playline/contracts';

/**
 * Keys of environments, one record for each environment and kind. So an environment has at most one live key of a kind,
 * and a refresh is never half done.
 */
export const ACCESS_KEYS: RecordKind<AccessKeyRecord> = {
  name: 'keys',
  topic: TOPICS.accessKeys.name,
  codec: accessKeyCodec,
  idOf: ({ id }) => id,
};

/** One key of an environment, live or ended. */
export interface KeyRecord {
  readonly keyId: string;
  readonly projectId: string;
  readonly environmentId: string;
  readonly environment: KeyEnvironment;
  readonly kind: KeyKind;
  /** SHA-256 of the key's text, hexadecimal. */
  readonly hash: string;
  /** First and last four characters of the random part, so that a person can tell keys apart. */
  readonly first4: string;
  readonly last4: string;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** Epoch milliseconds; null while the key is live. */
  readonly revokedAt: number | null;
  /** Name for people; '' without one. */
  readonly name: string;
  /** Text of a live publishable key, which is no secret; else null. */
  readonly text: string | null;
  /** Who made, changed or ended it last. */
  readonly changedBy: string;
  /** For a live publishable key: origins whose pages may use it (`parseOrigins`). Empty means any. */
  readonly origins: readonly string[];
}

/** The keys of a record, oldest first. */
export function keysOf({ live, ended, ...owner }: AccessKeyRecord): KeyRecord[] {
  const { projectId, environmentId, environment, kind } = owner;
  const of = { projectId, environmentId, environment, kind };
  const keys: KeyRecord[] = ended.toReversed().map((key) => ({ ...of, ...key, text: null, origins: [] }));
  if (live !== null) keys.push({ ...of, ...live, revokedAt: null });
  return keys;
}

/** All keys of a project, oldest first. */
export function keysOfProject(records: readonly AccessKeyRecord[], projectId: string): KeyRecord[] {
  const own = records.filter((record) => record.projectId === projectId).flatMap(keysOf);
  return own.toSorted((a, b) => a.createdAt - b.createdAt);
}

/** The live key of an environment and kind; null when it has none. */
export function findLiveKey(
  records: readonly AccessKeyRecord[],
  { environmentId, kind }: Pick<KeyRecord, 'environmentId' | 'kind'>,
): KeyRecord | null {
  const record = records.find(({ id }) => id === toKeysId(environmentId, kind));
  return record === undefined || record.live === null ? null : (keysOf(record).at(-1) ?? null);
}

export const toKeysId = (environmentId: string, kind: KeyKind): string => `${environmentId}/${kind}`;
