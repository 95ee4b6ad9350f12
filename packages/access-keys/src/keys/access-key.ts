import { randomUUID } from 'node:crypto';
import { type AccessKeyRecord, accessKeyCodec, TOPICS } from '@playline/contracts';
import { invalidField, PublicError } from '@playline/errors';
import type { RecordKind } from '../records/record-log.ts';
import type { Content, RecordStore } from '../records/record-store.ts';
import { createKeyText, displayPartsOf, hashKey, type KeyEnvironment, type KeyKind } from './key-text.ts';

export type { AccessKeyRecord } from '@playline/contracts';

/** A record has at most one live key. An environment has one record of secret keys, and several of publishable keys. */
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
  /** When a publishable key stops working, or stopped working; null if no end is set. */
  readonly endsAt: number | null;
  /** Keys with the same value share one message rate limit. */
  readonly limitId: string;
  /** Empty if the key has no name. */
  readonly name: string;
  /** The key itself, for live publishable keys; otherwise null. */
  readonly text: string | null;
  readonly changedBy: string;
  /** Origins whose pages may use a live publishable key (`parseOrigins`). Empty allows all origins. */
  readonly origins: readonly string[];
}

/** Returns the live key and the ended keys, oldest first. */
export function keysOf({ live, ended, ...owner }: AccessKeyRecord, atMs: number = Date.now()): KeyRecord[] {
  const { projectId, environmentId, environment, kind } = owner;
  const common = { projectId, environmentId, environment, kind };
  const keys: KeyRecord[] = ended.toReversed().map((key) => {
    return { ...common, ...key, text: null, origins: [], endsAt: null, limitId: key.keyId };
  });
  if (live === null) return keys;
  // Older releases write neither an end nor a limit id.
  const { endsAt = null, limitId = '' } = live as Partial<Live>;
  const revokedAt = endsAt !== null && endsAt <= atMs ? endsAt : null;
  keys.push({ ...common, ...live, endsAt, limitId: limitId === '' ? live.keyId : limitId, revokedAt });
  return keys;
}

/** Returns the project's keys, oldest first. */
export function keysOfProject(records: readonly AccessKeyRecord[], projectId: string): KeyRecord[] {
  const keys = records.filter((record) => record.projectId === projectId).flatMap((record) => keysOf(record));
  return keys.toSorted((a, b) => a.createdAt - b.createdAt);
}

/** Names a live key. Without `keyId`: the only live key, or the only one without an end. */
export interface KeyChoice {
  readonly environmentId: string;
  readonly kind: KeyKind;
  readonly keyId?: string | undefined;
}

/** Returns null if there is no live key. @throws PublicError CONFLICT_ERROR if `keyId` is required to choose a key */
export function findLiveKey(
  records: readonly AccessKeyRecord[],
  { environmentId, kind, keyId }: KeyChoice,
): KeyRecord | null {
  const live = liveKeysOf(records, { environmentId, kind }).filter((key) => keyId === undefined || key.keyId === keyId);
  const [key, ...others] = live.length === 1 ? live : live.filter(({ endsAt }) => endsAt === null);
  if (live.length === 0) return null;
  if (key !== undefined && others.length === 0) return key;
  const message = `The environment has ${live.length} live ${kind} keys. Choose one of them by its id.`;
  throw conflict({ environmentId, kind }, message);
}

/** Returns the publishable key for new clients: the oldest without an end, otherwise the newest; null if none is live. */
export function findPublishableKey(records: readonly AccessKeyRecord[], environmentId: string): string | null {
  const live = liveKeysOf(records, { environmentId, kind: 'publishable' });
  return (live.find(({ endsAt }) => endsAt === null) ?? live.at(-1))?.text ?? null;
}

/** Oldest first. */
const liveKeysOf = (records: readonly AccessKeyRecord[], { environmentId, kind }: KeyChoice): KeyRecord[] =>
  records
    .filter((record) => record.environmentId === environmentId && record.kind === kind)
    .flatMap((record) => keysOf(record))
    .filter(({ revokedAt }) => revokedAt === null)
    .toSorted((a, b) => a.createdAt - b.createdAt);

/** An environment's first record of a kind has the number 1, which releases with a single publishable key also use. */
const toKeysId = (environmentId: string, kind: KeyKind, number = 1): string =>
  `${environmentId}/${kind}${number === 1 ? '' : `/${number}`}`;

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
/** Enough for each platform and its supported builds. Limits the number of records of an environment. */
export const PUBLISHABLE_KEYS_MAX = 20;
/** Maximum time until a key stops. A longer period is a mistyped date. */
export const KEY_END_MAX_MS: number = 366 * 86_400_000;

/** @throws PublicError CONFLICT_ERROR if the environment has a live secret key, or the maximum of publishable keys */
export async function createKey({ store, prefix }: KeyContext, wanted: NewKey): Promise<CreatedKey> {
  const key = createKeyText(prefix, wanted);
  const live = { ...toLive(store, wanted, key), name: wanted.name ?? '' };
  const record = await store.change((records) => addLive(records, wanted, live));
  return { record: newestOf(record), key };
}

/**
 * Replaces a live key. The new key shares the rate limit of the old key, and has its allowed origins.
 * @param wanted.endsAt when the old publishable key stops; by default, the old key stops immediately
 * @throws PublicError RESOURCE_NOT_FOUND, CONFLICT_ERROR if the key was just replaced or several keys are live,
 * VALIDATION_ERROR for an invalid end
 */
export async function refreshKey(
  { store, prefix }: KeyContext,
  { endsAt, keyId, ...wanted }: NewKey & { readonly keyId?: string | undefined; readonly endsAt?: number | undefined },
): Promise<CreatedKey> {
  const key = createKeyText(prefix, wanted);
  const toSuccessor = (old: Pick<KeyRecord, 'name' | 'origins' | 'limitId'>): Live => {
    const { name, limitId } = old;
    return { ...toLive(store, wanted, key), name: wanted.name ?? name, origins: [...old.origins], limitId };
  };
  if (endsAt === undefined) {
    const record = await changeLive(store, { ...wanted, keyId }, (current, live) => {
      const successor = toSuccessor(newestOf(current));
      return { ...end(store, current, live), live: successor, action: 'refresh' };
    });
    return { record: newestOf(record), key };
  }
  assertEnd(endsAt);
  const old = requireLiveKey(await store.readAll(), { ...wanted, keyId });
  const choice = { ...wanted, keyId: old.keyId };
  // In this order, a crash between the two records leaves both keys live, and no client loses access.
  const record = await store.change((records) => {
    requireLiveKey(records, choice);
    return addLive(records, wanted, toSuccessor(old));
  });
  await setKeyEnd({ store }, { ...choice, endsAt });
  return { record: newestOf(record), key };
}

/** @throws PublicError see `refreshKey` */
export async function revokeKey({ store }: Pick<KeyContext, 'store'>, wanted: KeyChoice): Promise<KeyRecord> {
  const record = await changeLive(store, wanted, (current, live) => ({
    ...end(store, current, live),
    live: null,
    action: 'revoke',
  }));
  return newestOf(record);
}

/**
 * Sets, extends or removes the end of a live publishable key. Every gateway applies the end by its own clock.
 * @throws PublicError see `refreshKey`
 */
export async function setKeyEnd(
  { store }: Pick<KeyContext, 'store'>,
  { endsAt, ...wanted }: Omit<KeyChoice, 'kind'> & { readonly endsAt: number | null },
): Promise<KeyRecord> {
  if (endsAt !== null) assertEnd(endsAt);
  return changeFields(store, wanted, { endsAt });
}

/**
 * Sets the name or the allowed origins of a publishable key. The change takes effect in every process within a second.
 * @param wanted.origins as entered by a person; empty allows all origins
 * @throws PublicError VALIDATION_ERROR for an invalid origin; see also `refreshKey`
 */
export async function changeKey(
  { store }: Pick<KeyContext, 'store'>,
  {
    name,
    origins,
    ...wanted
  }: Omit<KeyChoice, 'kind'> & { readonly name?: string; readonly origins: readonly string[] },
): Promise<KeyRecord> {
  const fields = { origins: parseOrigins(origins) };
  return changeFields(store, wanted, name === undefined ? fields : { ...fields, name });
}

type Live = NonNullable<AccessKeyRecord['live']>;

async function changeFields(
  store: KeyContext['store'],
  { environmentId, keyId }: Omit<KeyChoice, 'kind'>,
  fields: Partial<Pick<Live, 'endsAt' | 'origins' | 'name'>>,
): Promise<KeyRecord> {
  const record = await changeLive(store, { environmentId, kind: 'publishable', keyId }, (current, live) => {
    return { ...current, live: { ...live, ...fields, changedBy: store.author.changedBy }, action: 'change' };
  });
  return newestOf(record);
}

/** Changes a live key's record, unless the key has been replaced. */
async function changeLive(
  store: KeyContext['store'],
  { environmentId, kind, keyId }: KeyChoice,
  change: (current: AccessKeyRecord, live: Live) => Content<AccessKeyRecord>,
): Promise<AccessKeyRecord> {
  const expected = requireLiveKey(await store.readAll(), { environmentId, kind, keyId });
  return store.change((records) => {
    const current = records.find(({ live }) => live?.keyId === expected.keyId);
    if (current === undefined || current.live === null || !hasLiveKey(current))
      throw conflict({ environmentId, kind }, 'The key was just replaced. Reload and try again.');
    return change(current, current.live);
  });
}

/** @throws PublicError RESOURCE_NOT_FOUND; see also `findLiveKey` */
function requireLiveKey(records: readonly AccessKeyRecord[], choice: KeyChoice): KeyRecord {
  const found = findLiveKey(records, choice);
  if (found !== null) return found;
  const { environmentId, kind, keyId } = choice;
  const message =
    keyId === undefined ? 'The environment has no live key of this kind.' : 'The key is not live in this environment.';
  throw new PublicError('RESOURCE_NOT_FOUND', { message, details: { environmentId, kind } });
}

const hasLiveKey = (record: AccessKeyRecord) => record.live !== null && newestOf(record).revokedAt === null;

/** Puts a live key into the environment's first record without one, so that few records are enough for many refreshes. */
function addLive(records: readonly AccessKeyRecord[], wanted: NewKey, live: Live): Content<AccessKeyRecord> {
  const { projectId, environmentId, environment, kind } = wanted;
  const length = kind === 'secret' ? 1 : PUBLISHABLE_KEYS_MAX;
  const ids = Array.from({ length }, (_, index) => toKeysId(environmentId, kind, index + 1));
  const inUse = new Set(records.filter(hasLiveKey).map((record) => record.id));
  const id = ids.find((each) => !inUse.has(each));
  if (id === undefined) throw conflict(wanted, kind === 'secret' ? SECRET_EXISTS : TOO_MANY_KEYS);
  const { live: over = null, ended: earlier = [] } = records.find((record) => record.id === id) ?? {};
  // A key that has reached its end is still stored as the live key.
  const ended = over === null ? earlier : [toEnded(over, over.endsAt ?? 0), ...earlier].slice(0, ENDED_KEYS_KEPT);
  return { id, projectId, environmentId, environment, kind, live, ended, action: 'create' };
}

const SECRET_EXISTS = 'The environment already has a live key of this kind. Refresh the key.';
const TOO_MANY_KEYS = `The environment already has ${PUBLISHABLE_KEYS_MAX} live publishable keys. Revoke one of them first.`;

function end(store: KeyContext['store'], current: AccessKeyRecord, live: Live): AccessKeyRecord {
  const ended = { ...toEnded(live, Date.now()), changedBy: store.author.changedBy };
  return { ...current, ended: [ended, ...current.ended].slice(0, ENDED_KEYS_KEPT) };
}

function toEnded(live: Live, revokedAt: number): AccessKeyRecord['ended'][number] {
  const { text: _, origins: __, endsAt: ___, limitId: ____, ...key } = live;
  return { ...key, revokedAt };
}

function toLive(store: KeyContext['store'], { kind }: NewKey, key: string): Live {
  return {
    keyId: randomUUID(),
    hash: hashKey(key),
    ...displayPartsOf(key),
    name: '',
    createdAt: Date.now(),
    changedBy: store.author.changedBy,
    // Publishable keys are not secret, and developers need to copy them again later.
    text: kind === 'publishable' ? key : null,
    origins: [],
    endsAt: null,
    limitId: '',
  };
}

/** @throws PublicError VALIDATION_ERROR */
function assertEnd(endsAt: number, wallClockMs: () => number = Date.now): void {
  const atMs = wallClockMs();
  if (!(endsAt > atMs)) throw invalidField('stops', 'Choose a time in the future.');
  if (endsAt > atMs + KEY_END_MAX_MS) throw invalidField('stops', 'Choose a time within the next 366 days.');
}

const INSTANT = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2}))?$/;

/** Parses hours or days from now (24h, 7d), a date in UTC, or a time with a UTC offset. Returns null if invalid. */
export function parseInstant(text: string, wallClockMs: () => number = Date.now): number | null {
  const [, count, unit] = /^([1-9]\d{0,3})([hd])$/.exec(text) ?? [];
  if (count !== undefined) return wallClockMs() + Number(count) * (unit === 'h' ? 3_600_000 : 86_400_000);
  const instant = INSTANT.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(instant) ? null : instant;
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
