import { randomUUID } from 'node:crypto';
import { type AccessKeyRecord, accessKeyCodec, TOPICS } from '@playline/contracts';
import { invalidField, PublicError } from '@playline/errors';
import type { RecordKind } from '../records/record-log.ts';
import type { Content, RecordStore } from '../records/record-store.ts';
import { createKeyText, displayPartsOf, hashKey, type KeyEnvironment, type KeyKind } from './key-text.ts';

export type { AccessKeyRecord } from '@playline/contracts';

/** One record per environment and key kind, which guarantees at most one live key of each kind. */
export const ACCESS_KEYS: RecordKind<AccessKeyRecord> = {
  name: 'keys',
  topic: TOPICS.accessKeys.name,
  codec: accessKeyCodec,
  idOf: ({ id }) => id,
};

export interface KeyRecord {
  readonly keyId: string;
  readonly projectId: string;
  readonly environmentId: string;
  readonly environment: KeyEnvironment;
  readonly kind: KeyKind;
  /** SHA-256 of the key, in hexadecimal. */
  readonly hash: string;
  /** First and last characters of the random part, for display. */
  readonly first4: string;
  readonly last4: string;
  readonly createdAt: number;
  /** Epoch milliseconds, like `createdAt`; null while the key is live. */
  readonly revokedAt: number | null;
  /** Empty if the key has no name. */
  readonly name: string;
  /** The key itself, for live publishable keys; otherwise null. */
  readonly text: string | null;
  readonly changedBy: string;
  /** Origins whose pages may use a live publishable key (`parseOrigins`). Empty allows all origins. */
  readonly origins: readonly string[];
}

/** Returns the live key and the ended keys, oldest first. */
export function keysOf({ live, ended, ...owner }: AccessKeyRecord): KeyRecord[] {
  const { projectId, environmentId, environment, kind } = owner;
  const common = { projectId, environmentId, environment, kind };
  const keys: KeyRecord[] = ended.toReversed().map((key) => ({ ...common, ...key, text: null, origins: [] }));
  if (live !== null) keys.push({ ...common, ...live, revokedAt: null });
  return keys;
}

/** Returns the project's keys, oldest first. */
export function keysOfProject(records: readonly AccessKeyRecord[], projectId: string): KeyRecord[] {
  const keys = records.filter((record) => record.projectId === projectId).flatMap(keysOf);
  return keys.toSorted((a, b) => a.createdAt - b.createdAt);
}

export function findLiveKey(
  records: readonly AccessKeyRecord[],
  { environmentId, kind }: Pick<KeyRecord, 'environmentId' | 'kind'>,
): KeyRecord | null {
  const record = records.find(({ id }) => id === toKeysId(environmentId, kind));
  return record === undefined || record.live === null ? null : (keysOf(record).at(-1) ?? null);
}

export const toKeysId = (environmentId: string, kind: KeyKind): string => `${environmentId}/${kind}`;

export interface KeyContext {
  readonly store: RecordStore<AccessKeyRecord>;
  /** ACCESS_KEY_PREFIX, such as `svcapik`. */
  readonly prefix: string;
}

export interface NewKey {
  projectId: string;
  environmentId: string;
  environment: KeyEnvironment;
  kind: KeyKind;
  /** Default: empty for a new key, the previous name for a refreshed key. */
  name?: string | undefined;
}

export interface CreatedKey {
  record: KeyRecord;
  /** Returned only once. */
  key: string;
}

/** Limits the record size; the audit log contains all keys. */
export const ENDED_KEYS_KEPT = 50;

/** @throws PublicError CONFLICT_ERROR if the environment has a live key of this kind; use `refreshKey` to replace it */
export async function createKey({ store, prefix }: KeyContext, wanted: NewKey): Promise<CreatedKey> {
  const key = createKeyText(prefix, wanted);
  const record = await store.change((records) => {
    const current = records.find(({ id }) => id === toKeysId(wanted.environmentId, wanted.kind));
    if (current !== undefined && current.live !== null)
      throw conflict(wanted, 'The environment already has a live key of this kind. Refresh the key.');
    const { projectId, environmentId, environment, kind } = wanted;
    return {
      id: toKeysId(environmentId, kind),
      projectId,
      environmentId,
      environment,
      kind,
      live: { ...toLive(store, wanted, key), name: wanted.name ?? '', origins: [] },
      ended: current?.ended ?? [],
      action: 'create',
    };
  });
  return { record: newestOf(record), key };
}

/** Replaces the live key. @throws PublicError RESOURCE_NOT_FOUND, CONFLICT_ERROR if the key was just replaced */
export async function refreshKey({ store, prefix }: KeyContext, wanted: NewKey): Promise<CreatedKey> {
  const key = createKeyText(prefix, wanted);
  const record = await changeLive(store, wanted, (current, live) => ({
    ...end(store, current, live),
    live: { ...toLive(store, wanted, key), name: wanted.name ?? live.name, origins: live.origins },
    action: 'refresh',
  }));
  return { record: newestOf(record), key };
}

/** @throws PublicError see `refreshKey` */
export async function revokeKey(
  { store }: Pick<KeyContext, 'store'>,
  wanted: Pick<NewKey, 'environmentId' | 'kind'>,
): Promise<KeyRecord> {
  const record = await changeLive(store, wanted, (current, live) => ({
    ...end(store, current, live),
    live: null,
    action: 'revoke',
  }));
  return newestOf(record);
}

/**
 * Sets the allowed origins. The change takes effect in every process within a second.
 * @param wanted.origins as entered by a person; empty allows all origins
 * @throws PublicError VALIDATION_ERROR for an invalid origin; see also `refreshKey`
 */
export async function setKeyOrigins(
  { store }: Pick<KeyContext, 'store'>,
  wanted: { readonly environmentId: string; readonly origins: readonly string[] },
): Promise<KeyRecord> {
  const origins = parseOrigins(wanted.origins);
  const key = { environmentId: wanted.environmentId, kind: 'publishable' } as const;
  const record = await changeLive(store, key, (current, live) => ({
    ...current,
    live: { ...live, origins, changedBy: store.author.changedBy },
    action: 'change',
  }));
  return newestOf(record);
}

type Live = NonNullable<AccessKeyRecord['live']>;

/** Changes a live key's record, unless the key has been replaced. */
async function changeLive(
  store: KeyContext['store'],
  wanted: Pick<NewKey, 'environmentId' | 'kind'>,
  change: (current: AccessKeyRecord, live: Live) => Content<AccessKeyRecord>,
): Promise<AccessKeyRecord> {
  const { environmentId, kind } = wanted;
  const expected = findLiveKey(await store.readAll(), wanted);
  if (expected === null) {
    const message = 'The environment has no live key of this kind.';
    throw new PublicError('RESOURCE_NOT_FOUND', { message, details: { environmentId, kind } });
  }
  return store.change((records) => {
    const current = records.find(({ id }) => id === toKeysId(environmentId, kind));
    if (current === undefined || current.live === null || current.live.keyId !== expected.keyId)
      throw conflict(wanted, 'The key was just replaced. Reload and try again.');
    return change(current, current.live);
  });
}

function end(store: KeyContext['store'], current: AccessKeyRecord, live: Live): AccessKeyRecord {
  const { text: _, origins: __, ...key } = live;
  const ended = { ...key, changedBy: store.author.changedBy, revokedAt: Date.now() };
  return { ...current, ended: [ended, ...current.ended].slice(0, ENDED_KEYS_KEPT) };
}

function toLive(store: KeyContext['store'], { kind }: NewKey, key: string): Omit<Live, 'name' | 'origins'> {
  return {
    keyId: randomUUID(),
    hash: hashKey(key),
    ...displayPartsOf(key),
    createdAt: Date.now(),
    changedBy: store.author.changedBy,
    // Publishable keys are not secret, and developers need to copy them again later.
    text: kind === 'publishable' ? key : null,
  };
}

const newestOf = (record: AccessKeyRecord): KeyRecord => keysOf(record).at(-1)!;

const conflict = ({ environmentId, kind }: Pick<NewKey, 'environmentId' | 'kind'>, message: string): PublicError =>
  new PublicError('CONFLICT_ERROR', { message, details: { environmentId, kind } });

/** Limited, because every browser request is checked against the list. */
export const ORIGINS_MAX = 50;
const ORIGIN_CHARACTERS_MAX = 255;

/** Converts origins to the form of `Origin` headers and removes duplicates. @throws PublicError VALIDATION_ERROR */
export function parseOrigins(texts: readonly string[]): string[] {
  const origins = [...new Set(texts.map(parseOrigin))];
  if (origins.length > ORIGINS_MAX) throw invalidField('origins', `At most ${ORIGINS_MAX} origins are allowed.`);
  return origins;
}

function parseOrigin(text: string): string {
  const url = text.length > ORIGIN_CHARACTERS_MAX || /[\s*]/.test(text) ? null : URL.parse(text);
  const isOrigin = url !== null && /^https?:$/.test(url.protocol) && !/^https?:\/\/[^/?#]*@|[?#]/i.test(text);
  if (!isOrigin || url.pathname !== '/')
    throw invalidField('origins', 'An origin has a scheme, a host and an optional port, such as https://game.example.');
  return url.origin;
}
