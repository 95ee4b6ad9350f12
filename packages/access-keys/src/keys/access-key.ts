import { randomUUID } from 'node:crypto';
import { type AccessKeyRecord, accessKeyCodec, TOPICS } from '@playline/contracts';
import { invalidField, PublicError } from '@playline/errors';
import type { RecordKind } from '../records/record-log.ts';
import type { Content, RecordStore } from '../records/record-store.ts';
import { createKeyText, endsOfKey, hashKey, type KeyEnvironment, type KeyKind } from './key-text.ts';

export type { AccessKeyRecord } from '@playline/contracts';

/** One record for each environment and kind, so that there is at most one live key of a kind. */
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
  /** SHA-256 of the text, hexadecimal. */
  readonly hash: string;
  /** Of the random part, shown to people. */
  readonly first4: string;
  readonly last4: string;
  readonly createdAt: number;
  /** Epoch milliseconds, as `createdAt`; null while the key is live. */
  readonly revokedAt: number | null;
  /** '' without a name. */
  readonly name: string;
  /** Of a live publishable key; else null. */
  readonly text: string | null;
  readonly changedBy: string;
  /** Origins whose pages may use a live publishable key (`parseOrigins`). Empty: any. */
  readonly origins: readonly string[];
}

/** The oldest first. */
export function keysOf({ live, ended, ...owner }: AccessKeyRecord): KeyRecord[] {
  const { projectId, environmentId, environment, kind } = owner;
  const of = { projectId, environmentId, environment, kind };
  const keys: KeyRecord[] = ended.toReversed().map((key) => ({ ...of, ...key, text: null, origins: [] }));
  if (live !== null) keys.push({ ...of, ...live, revokedAt: null });
  return keys;
}

/** The oldest first. */
export function keysOfProject(records: readonly AccessKeyRecord[], projectId: string): KeyRecord[] {
  const own = records.filter((record) => record.projectId === projectId).flatMap(keysOf);
  return own.toSorted((a, b) => a.createdAt - b.createdAt);
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
  /** Absent: '', or the previous name when refreshed. */
  name?: string | undefined;
}

export interface CreatedKey {
  record: KeyRecord;
  /** Cannot be read again. */
  key: string;
}

/** Bounds a record; the audit log has all keys. */
export const ENDED_KEYS_KEPT = 50;

/** @throws PublicError CONFLICT_ERROR when the environment has a live key of that kind; `refreshKey` replaces it */
export async function createKey({ store, prefix }: KeyContext, wanted: NewKey): Promise<CreatedKey> {
  const key = createKeyText(prefix, wanted);
  const record = await store.change((records) => {
    const present = records.find(({ id }) => id === toKeysId(wanted.environmentId, wanted.kind));
    if (present !== undefined && present.live !== null)
      throw conflict(wanted, 'The environment already has a live key of this kind.');
    const { projectId, environmentId, environment, kind } = wanted;
    return {
      id: toKeysId(environmentId, kind),
      projectId,
      environmentId,
      environment,
      kind,
      live: { ...toLive(store, wanted, key), name: wanted.name ?? '', origins: [] },
      ended: present?.ended ?? [],
      action: 'create',
    };
  });
  return { record: newestOf(record), key };
}

/** Ends a key and creates its successor. @throws PublicError RESOURCE_NOT_FOUND without a key, CONFLICT_ERROR when it was just replaced */
export async function refreshKey({ store, prefix }: KeyContext, wanted: NewKey): Promise<CreatedKey> {
  const key = createKeyText(prefix, wanted);
  const record = await changeLive(store, wanted, (present, live) => ({
    ...end(store, present, live),
    live: { ...toLive(store, wanted, key), name: wanted.name ?? live.name, origins: live.origins },
    action: 'refresh',
  }));
  return { record: newestOf(record), key };
}

/** @throws PublicError as `refreshKey` */
export async function revokeKey(
  { store }: Pick<KeyContext, 'store'>,
  wanted: Pick<NewKey, 'environmentId' | 'kind'>,
): Promise<KeyRecord> {
  const record = await changeLive(store, wanted, (present, live) => ({
    ...end(store, present, live),
    live: null,
    action: 'revoke',
  }));
  return newestOf(record);
}

/**
 * Applies in every process within a second.
 * @param wanted.origins as people write them; empty: any
 * @throws PublicError VALIDATION_ERROR for an invalid origin; else as `refreshKey`
 */
export async function setKeyOrigins(
  { store }: Pick<KeyContext, 'store'>,
  wanted: { readonly environmentId: string; readonly origins: readonly string[] },
): Promise<KeyRecord> {
  const origins = parseOrigins(wanted.origins);
  const of = { environmentId: wanted.environmentId, kind: 'publishable' } as const;
  const record = await changeLive(store, of, (present, live) => ({
    ...present,
    live: { ...live, origins, changedBy: store.author.changedBy },
    action: 'change',
  }));
  return newestOf(record);
}

type Live = NonNullable<AccessKeyRecord['live']>;

/** Changes the record of a live key, unless another one has replaced it. */
async function changeLive(
  store: KeyContext['store'],
  wanted: Pick<NewKey, 'environmentId' | 'kind'>,
  change: (present: AccessKeyRecord, live: Live) => Content<AccessKeyRecord>,
): Promise<AccessKeyRecord> {
  const { environmentId, kind } = wanted;
  const expected = findLiveKey(await store.readAll(), wanted);
  if (expected === null) {
    const message = 'The environment has no live key of this kind.';
    throw new PublicError('RESOURCE_NOT_FOUND', { message, details: { environmentId, kind } });
  }
  return store.change((records) => {
    const present = records.find(({ id }) => id === toKeysId(environmentId, kind));
    if (present === undefined || present.live === null || present.live.keyId !== expected.keyId)
      throw conflict(wanted, 'The key was just replaced. Reload and try again.');
    return change(present, present.live);
  });
}

function end(store: KeyContext['store'], present: AccessKeyRecord, live: Live): AccessKeyRecord {
  const { text: _, origins: __, ...key } = live;
  const ended = { ...key, changedBy: store.author.changedBy, revokedAt: Date.now() };
  return { ...present, ended: [ended, ...present.ended].slice(0, ENDED_KEYS_KEPT) };
}

function toLive(store: KeyContext['store'], { kind }: NewKey, key: string): Omit<Live, 'name' | 'origins'> {
  return {
    keyId: randomUUID(),
    hash: hashKey(key),
    ...endsOfKey(key),
    createdAt: Date.now(),
    changedBy: store.author.changedBy,
    // No secret, and developers need to see it again.
    text: kind === 'publishable' ? key : null,
  };
}

const newestOf = (record: AccessKeyRecord): KeyRecord => keysOf(record).at(-1)!;

const conflict = ({ environmentId, kind }: Pick<NewKey, 'environmentId' | 'kind'>, message: string): PublicError =>
  new PublicError('CONFLICT_ERROR', { message, details: { environmentId, kind } });

/** Bounded, because each request of a page is compared with the list. */
export const ORIGINS_MAX = 50;
const ORIGIN_CHARACTERS_MAX = 255;

/** Normalised to the form of the `Origin` header, without duplicates. @throws PublicError VALIDATION_ERROR for an invalid one, or too many */
export function parseOrigins(texts: readonly string[]): string[] {
  const origins = [...new Set(texts.map(parseOrigin))];
  if (origins.length > ORIGINS_MAX) throw invalidField('origins', `At most ${ORIGINS_MAX} origins.`);
  return origins;
}

function parseOrigin(text: string): string {
  const url = text.length > ORIGIN_CHARACTERS_MAX || /[\s*]/.test(text) ? null : URL.parse(text);
  const isBare = url !== null && /^https?:$/.test(url.protocol) && !/^https?:\/\/[^/?#]*@|[?#]/i.test(text);
  if (!isBare || url.pathname !== '/')
    throw invalidField('origins', 'An origin is a scheme, a host and optionally a port, such as https://game.example.');
  return url.origin;
}
