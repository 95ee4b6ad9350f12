import { randomUUID } from 'node:crypto';
import { invalidField, PublicError } from '@playline/errors';
import { type Content, type RecordStore, toDone } from '../records/record-store.ts';
import { type AccessKeyRecord, findLiveKey, type KeyRecord, keysOf, toKeysId } from './access-key.ts';
import { createKeyText, endsOfKey, hashKey, type KeyEnvironment, type KeyKind } from './key-text.ts';

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
  /** Name for people. When absent, a refreshed key keeps the previous name. */
  name?: string | undefined;
}

export interface CreatedKey {
  record: KeyRecord;
  /** The key's text. It cannot be read again. */
  key: string;
}

/** Ended keys that an environment keeps of each kind. Bounds the record; the audit has all of them. */
export const ENDED_KEYS_KEPT = 50;

/**
 * Creates the key of one kind of an environment.
 * @throws PublicError CONFLICT_ERROR when the environment has a live key of that kind; `refreshKey` replaces it
 */
export async function createKey({ store, prefix }: KeyContext, wanted: NewKey): Promise<CreatedKey> {
  const key = createKeyText(prefix, wanted);
  const record = await store.change((records) => {
    const present = records.find(({ id }) => id === toKeysId(wanted.environmentId, wanted.kind));
    if (present !== undefined && present.live !== null)
      throw conflict(wanted, 'The environment has a live key of this kind already.');
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
  return { record: newestOf(toDone(record)), key };
}

/**
 * Ends the environment's key of that kind and creates its successor in one step.
 * @throws PublicError RESOURCE_NOT_FOUND when there is none, CONFLICT_ERROR when it was replaced at the same moment
 */
export async function refreshKey({ store, prefix }: KeyContext, wanted: NewKey): Promise<CreatedKey> {
  const key = createKeyText(prefix, wanted);
  const record = await changeLive(store, wanted, (present, live) => ({
    ...end(store, present, live),
    live: { ...toLive(store, wanted, key), name: wanted.name ?? live.name, origins: live.origins },
    action: 'refresh',
  }));
  return { record: newestOf(record), key };
}

/** Ends the environment's key of that kind without a successor. @throws PublicError as `refreshKey` */
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
 * Sets the origins whose pages may use the publishable key of an environment. In effect in every process within a
 * second.
 * @param wanted.origins as people write them; empty means any
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

/** Changes the record of a live key, unless another key is live by the time the change is decided. */
async function changeLive(
  store: KeyContext['store'],
  wanted: Pick<NewKey, 'environmentId' | 'kind'>,
  change: (present: AccessKeyRecord, live: Live) => Content<AccessKeyRecord>,
): Promise<AccessKeyRecord> {
  const { environmentId, kind } = wanted;
  const meant = findLiveKey(await store.readAll(), wanted);
  if (meant === null) {
    const message = 'The environment has no live key of this kind.';
    throw new PublicError('RESOURCE_NOT_FOUND', { message, details: { environmentId, kind } });
  }
  const changed = await store.change((records) => {
    const present = records.find(({ id }) => id === toKeysId(environmentId, kind));
    if (present === undefined || present.live === null || present.live.keyId !== meant.keyId)
      throw conflict(wanted, 'The key was replaced at the same moment.');
    return change(present, present.live);
  });
  return toDone(changed);
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
    // A publishable key is no secret, and developers need to see it again.
    text: kind === 'publishable' ? key : null,
  };
}

const newestOf = (record: AccessKeyRecord): KeyRecord => keysOf(record).at(-1)!;

function conflict({ environmentId, kind }: Pick<NewKey, 'environmentId' | 'kind'>, message: string): PublicError {
  return new PublicError('CONFLICT_ERROR', { message, details: { environmentId, kind } });
}

/** More sites than a game has. Bounded, because each request of a page is compared with the list. */
export const ORIGINS_MAX = 50;
const ORIGIN_CHARACTERS_MAX = 255;

/**
 * Normalises origins to the form of the header `Origin`: scheme, host and port in lower case, without a default port.
 * Removes duplicates.
 * @throws PublicError VALIDATION_ERROR for a text that is no http or https origin, and for too many
 */
export function parseOrigins(texts: readonly string[]): string[] {
  const origins = [...new Set(texts.map(parseOrigin))];
  if (origins.length > ORIGINS_MAX) throw invalidField('origins', `At most ${ORIGINS_MAX} origins.`);
  return origins;
}

function parseOrigin(text: string): string {
  const url = text.length > ORIGIN_CHARACTERS_MAX || /[\s*]/.test(text) ? null : URL.parse(text);
  const isBare = url !== null && /^https?:$/.test(url.protocol) && !/^https?:\/\/[^/?#]*@|[?#]/i.test(text);
  if (!isBare || url.pathname !== '/')
    throw invalidField('origins', 'An origin is a scheme, a host and perhaps a port, such as https://game.example.');
  return url.origin;
}
