import { randomUUID } from 'node:crypto';
import { PublicError } from '@playline/errors';
import type { KeyRecord, KeyStore } from './key-store.ts';
import { createKeyText, endsOfKey, hashKey, type KeyEnvironment, type KeyKind } from './key-text.ts';
import { parseOrigins } from './origins.ts';
import type { Author } from './records/record-store.ts';

export interface KeyContext {
  store: KeyStore;
  /** ACCESS_KEY_PREFIX, such as `svcapik`. */
  prefix: string;
  /** Author of the change; empty in the records when absent. */
  author?: Author;
}

export interface NewKey {
  projectId: string;
  environmentId: string;
  environment: KeyEnvironment;
  kind: KeyKind;
  /** Name for people. When absent, a refreshed key keeps the previous name. */
  name?: string | undefined;
  /** Origins of a publishable key, from `parseOrigins`. When absent, a refreshed key keeps the previous ones. */
  origins?: readonly string[];
}

export interface CreatedKey {
  record: KeyRecord;
  /** The key's text. It cannot be read again. */
  key: string;
}

/**
 * Creates the key of one kind of an environment.
 * @throws PublicError CONFLICT_ERROR when the environment has a live key of that kind; `refreshKey` replaces it
 */
export async function createKey(context: KeyContext, wanted: NewKey): Promise<CreatedKey> {
  const created = makeKey(context, wanted);
  if (await context.store.replace(null, created.record)) return created;
  throw conflict(wanted, 'The environment has a live key of this kind already.');
}

/**
 * Ends the environment's key of that kind and creates its successor in one step.
 * @throws PublicError RESOURCE_NOT_FOUND when there is none, CONFLICT_ERROR when it was replaced at the same moment
 */
export async function refreshKey(context: KeyContext, wanted: NewKey): Promise<CreatedKey> {
  const { store, author = NOBODY } = context;
  const live = await findLiveOrThrow(store, wanted);
  const created = makeKey(context, { ...wanted, name: wanted.name ?? live.name, origins: live.origins });
  if (await store.replace({ ...live, ...author, revokedAt: Date.now() }, created.record)) return created;
  throw conflict(wanted, 'The key was replaced at the same moment.');
}

/**
 * Ends the environment's key of that kind without a successor.
 * @throws PublicError as `refreshKey`
 */
export async function revokeKey(
  { store, author = NOBODY }: Pick<KeyContext, 'store' | 'author'>,
  wanted: Pick<NewKey, 'environmentId' | 'kind'>,
): Promise<KeyRecord> {
  const ended = { ...(await findLiveOrThrow(store, wanted)), ...author, revokedAt: Date.now() };
  if (await store.replace(ended, null)) return ended;
  throw conflict(wanted, 'The key was replaced at the same moment.');
}

/**
 * Sets the origins whose pages may use the publishable key of an environment. In effect in every process within a
 * second.
 * @param wanted.origins as people write them; empty means any
 * @throws PublicError VALIDATION_ERROR for what is no origin; else as `refreshKey`
 */
export async function setKeyOrigins(
  { store, author = NOBODY }: Pick<KeyContext, 'store' | 'author'>,
  wanted: { readonly environmentId: string; readonly origins: readonly string[] },
): Promise<KeyRecord> {
  const origins = parseOrigins(wanted.origins);
  const place = { environmentId: wanted.environmentId, kind: 'publishable' } as const;
  const changed = { ...(await findLiveOrThrow(store, place)), ...author, origins, changedAt: Date.now() };
  if (await store.amend(changed)) return changed;
  throw conflict(place, 'The key was replaced at the same moment.');
}

async function findLiveOrThrow(
  store: KeyStore,
  { environmentId, kind }: Pick<NewKey, 'environmentId' | 'kind'>,
): Promise<KeyRecord> {
  const live = await store.findLive(environmentId, kind);
  if (live !== null) return live;
  const message = 'The environment has no live key of this kind.';
  throw new PublicError('RESOURCE_NOT_FOUND', { message, details: { environmentId, kind } });
}

function conflict({ environmentId, kind }: Pick<NewKey, 'environmentId' | 'kind'>, message: string): PublicError {
  return new PublicError('CONFLICT_ERROR', { message, details: { environmentId, kind } });
}

const NOBODY: Author = { changedBy: '', requestId: '' };

function makeKey({ prefix, author = NOBODY }: Omit<KeyContext, 'store'>, wanted: NewKey): CreatedKey {
  const key = createKeyText(prefix, wanted);
  const record: KeyRecord = {
    keyId: randomUUID(),
    projectId: wanted.projectId,
    environmentId: wanted.environmentId,
    environment: wanted.environment,
    kind: wanted.kind,
    hash: hashKey(key),
    ...endsOfKey(key),
    createdAt: Date.now(),
    revokedAt: null,
    name: wanted.name ?? '',
    // A publishable key is no secret, and developers need to see it again.
    text: wanted.kind === 'publishable' ? key : null,
    ...author,
    ...{ origins: wanted.origins ?? [], changedAt: 0 },
  };
  return { record, key };
}
