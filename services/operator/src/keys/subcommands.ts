/** Implements the subcommands of `keys` for publishable and secret keys. */
import {
  type AccessKeyRecord,
  changeKey,
  createKey,
  findLiveKey,
  findPublishableKey,
  isProjectId,
  type KeyKind,
  type KeyRecord,
  type KeyUsage,
  type KeyUse,
  keysOfProject,
  type NewKey,
  NO_USE,
  PROJECT_ID_CHARACTERS_MAX,
  parseInstant,
  refreshKey,
  revokeKey,
  setKeyEnd,
} from '@playline/access-keys';
import { isEnvironmentId } from '@playline/contracts';
import { PublicError } from '@playline/errors';
import { type JsonOption, plural, printResult, type Terminal, UnreachableError, UsageError } from '../command.ts';
import { type EnvironmentName, type ProjectSources, requireEnvironment } from '../projects/environments.ts';
import { type RecordSources, readRecords, withRecords } from '../records/record-access.ts';
import type { ChangedKey } from './demo-keys.ts';

export interface EnvironmentKeysContext extends ProjectSources, UsageSource {
  readonly keys: RecordSources<AccessKeyRecord>;
  readonly prefix: string;
  /** Updates the files of a local stack; called for every changed key. */
  publish(changed: ChangedKey): Promise<void>;
}

export interface EnvironmentOptions {
  readonly project: string;
  readonly environment?: string | undefined;
}

interface KeyOptions extends EnvironmentOptions, JsonOption {
  readonly kind: KeyKind;
  readonly name?: string | undefined;
}

export function projectOf({ project }: EnvironmentOptions): string {
  if (!isProjectId(project))
    throw new UsageError(`--project: expected 1 to ${PROJECT_ID_CHARACTERS_MAX} characters from a-z, 0-9, _ and -`);
  return project;
}

export function toEnvironmentId(project: string, environment: string): string {
  return `${project}-${environment}`;
}

/** @throws UsageError */
export function environmentOf(options: EnvironmentOptions): EnvironmentName {
  return { project: projectOf(options), environment: environmentNameOf(options) };
}

/** @throws UsageError for invalid options; Error when the environment does not exist */
async function newKeyOf(
  context: EnvironmentKeysContext,
  { kind, name, ...options }: EnvironmentOptions & Pick<KeyOptions, 'kind' | 'name'>,
): Promise<NewKey> {
  const { project, environment } = await requireEnvironment(context, environmentOf(options));
  const owner = { projectId: project.id, environmentId: environment.id, environment: environment.kind };
  return { ...owner, kind, name };
}

function environmentNameOf({ environment: name = '' }: EnvironmentOptions): string {
  if (!isEnvironmentId(name))
    throw new UsageError('--environment: expected an environment name, such as production or development');
  return name;
}

/** Publishes keys of the default environments only, because a local stack stores no other keys. */
async function publish(
  context: EnvironmentKeysContext,
  { projectId, environmentId, environment, kind }: NewKey,
  key: string,
) {
  if (environmentId === toEnvironmentId(projectId, environment))
    await context.publish({ project: projectId, environment, kind, key });
}

interface StopOptions {
  readonly id?: string | undefined;
  readonly stops?: string | undefined;
}

export async function create(
  context: EnvironmentKeysContext,
  options: KeyOptions & StopOptions & { readonly replace?: boolean | undefined; readonly isRefresh: boolean },
  terminal: Terminal,
): Promise<void> {
  const wanted = await newKeyOf(context, options);
  const { environmentId, environment, kind } = wanted;
  const choice = { environmentId, kind, keyId: options.id };
  const { record, key, records } = await withRecords(context.keys, async (store) => {
    const keyStore = { store, prefix: context.prefix };
    const isReplacing = options.isRefresh || options.replace === true;
    const old = isReplacing ? findLiveKey(await store.readAll(), choice) : null;
    const create = async () => {
      if (old === null && !options.isRefresh) return createKey(keyStore, wanted);
      const stops = options.isRefresh ? await findEnd(context, options, old) : 'now';
      if (stops === null) throw new UsageError('--stops never: create another key instead');
      return refreshKey(keyStore, { ...wanted, keyId: options.id, endsAt: stops === 'now' ? undefined : stops });
    };
    const created = await create().catch((fault) => {
      const isTaken = kind === 'secret' && fault instanceof PublicError && fault.code === 'CONFLICT_ERROR';
      const flags = `--project ${wanted.projectId} --environment ${environmentId} --kind ${kind}`;
      const advice = `To replace the key, run npm run keys -- refresh ${flags}`;
      throw isTaken ? new Error(`${fault.message} ${advice}`, { cause: fault }) : fault;
    });
    return { ...created, records: await store.readAll() };
  });
  const line = { keyId: record.keyId, environmentId, environment, kind, key };
  // Printed before other steps can fail, because a secret key cannot be shown again.
  const once = kind === 'secret' ? ' (shown only once)' : '';
  printResult(terminal, options, line, [`New ${kind} key for ${environmentId}${once}:`, key]);
  await publish(context, wanted, kind === 'secret' ? key : (findPublishableKey(records, wanted.environmentId) ?? ''));
}

export async function revoke(
  context: EnvironmentKeysContext,
  options: KeyOptions & StopOptions,
  terminal: Terminal,
): Promise<void> {
  const wanted = (await findNamedKey(context, options)) ?? (await newKeyOf(context, options));
  const choice = { environmentId: wanted.environmentId, kind: wanted.kind, keyId: options.id };
  const { changed, records } = await withRecords(context.keys, async (store) => {
    const stops = await findEnd(context, options, findLiveKey(await store.readAll(), choice));
    const change = stops === 'now' ? revokeKey({ store }, choice) : setKeyEnd({ store }, { ...choice, endsAt: stops });
    return { changed: await change, records: await store.readAll() };
  });
  printResult(terminal, options, toPublicRecord(changed), toLine(changed));
  const published = findPublishableKey(records, wanted.environmentId) ?? '';
  await publish(context, wanted, wanted.kind === 'secret' ? '' : published);
}

/**
 * Returns when the key stops; null for never. Without `--stops`, only a key without recent messages stops now, so that
 * no builds lose access by surprise.
 * @throws UsageError
 */
async function findEnd(
  context: EnvironmentKeysContext,
  { stops, kind }: KeyOptions & StopOptions,
  key: KeyRecord | null,
): Promise<'now' | number | null> {
  if (stops !== undefined && kind === 'secret')
    throw new UsageError('--stops requires --kind publishable: a replaced or revoked secret key stops immediately');
  if (stops === 'now' || kind === 'secret' || key === null) return 'now';
  if (stops === 'never') return null;
  if (stops !== undefined) return instantOf('--stops', stops);
  const { usesOfHour } = (await readUse(context, [key.keyId])).get(key.keyId) ?? NO_USE;
  if (usesOfHour === 0) return 'now';
  const sent = `Clients sent ${plural(usesOfHour, 'request')} with the key ${key.first4}…${key.last4} in the last hour.`;
  throw new UsageError(`${sent} Choose when the key stops: --stops now, 24h, 7d, or a date`);
}

/** @throws UsageError */
export function instantOf(option: string, text: string): number {
  const instant = parseInstant(text);
  if (instant !== null) return instant;
  throw new UsageError(`${option}: expected 24h, 7d, a date, a time with a UTC offset (2027-01-31T12:00Z), or never`);
}

/** Shows or sets the allowed origins of a publishable key; `any` removes the restriction. */
export async function origins(
  context: EnvironmentKeysContext,
  options: EnvironmentOptions & JsonOption & Pick<StopOptions, 'id'> & { readonly origins?: string | undefined },
  terminal: Terminal,
): Promise<void> {
  const kind = 'publishable';
  const { environmentId } = await newKeyOf(context, { ...options, kind });
  const choice = { environmentId, kind, keyId: options.id } as const;
  const list = options.origins;
  const record = await withRecords(context.keys, async (store) => {
    if (list === undefined) return findLiveKey(await store.readAll(), choice);
    const wanted = list === 'any' ? [] : list.split(',').map((text) => text.trim());
    return changeKey({ store }, { ...choice, origins: wanted });
  });
  if (record === null)
    throw new Error(`${environmentId} has no live publishable key: create one with npm run keys -- create`);
  const allowed = record.origins.length === 0 ? ['any'] : record.origins;
  printResult(terminal, options, toPublicRecord(record), allowed);
}

/**
 * Finds a live key without reading projects, so that a leaked key can always be revoked.
 * @returns null if no key matches, because the options may be names instead of ids
 */
async function findNamedKey(context: EnvironmentKeysContext, options: KeyOptions): Promise<NewKey | null> {
  const [project, environment, { kind }] = [projectOf(options), environmentNameOf(options), options];
  const ids = [environment, toEnvironmentId(project, environment)];
  const records = keysOfProject(await readRecords(context.keys), project);
  const isNamed = (record: KeyRecord) => record.kind === kind && ids.includes(record.environmentId);
  return records.find((record) => record.revokedAt === null && isNamed(record)) ?? null;
}

export async function list(
  context: EnvironmentKeysContext,
  options: EnvironmentOptions & JsonOption & { readonly kind?: KeyKind | undefined },
  terminal: Terminal,
): Promise<void> {
  const { kind = null } = options;
  const project = projectOf(options);
  const environment = options.environment === undefined ? null : environmentNameOf(options);
  const isWanted = (record: KeyRecord) =>
    (environment === null || isInEnvironment(record, environment)) && (kind === null || record.kind === kind);
  const records = keysOfProject(await readRecords(context.keys), project).filter(isWanted);
  const ids = records.map(({ keyId }) => keyId);
  const uses = await readUse(context, ids);
  for (const record of records) {
    const use = uses.get(record.keyId) ?? NO_USE;
    printResult(terminal, options, { ...toPublicRecord(record), ...use }, `${toLine(record)}  ${toUseText(use)}`);
  }
}

function isInEnvironment({ projectId, environmentId, environment }: KeyRecord, name: string): boolean {
  return [environment, environmentId].includes(name) || environmentId === toEnvironmentId(projectId, name);
}

/** Omits the key's hash. */
function toPublicRecord({ hash: _, ...record }: KeyRecord) {
  return { ...record, state: record.revokedAt === null ? 'live' : 'ended' };
}

function toLine({ keyId, environmentId, kind, first4, last4, name, createdAt, revokedAt, endsAt }: KeyRecord): string {
  const live = endsAt === null ? 'live' : `live until ${new Date(endsAt).toISOString()}`;
  const state = revokedAt === null ? live : `ended ${new Date(revokedAt).toISOString()}`;
  return `${keyId}  ${environmentId}  ${kind}  ${first4}…${last4}${name === '' ? '' : `  ${name}`}  created ${new Date(createdAt).toISOString()}  ${state}`;
}

export interface UsageSource {
  openUsage(): Promise<Pick<KeyUsage, 'readKeys'> & { close(): Promise<void> }>;
}

/** @throws UnreachableError when Redis does not respond */
export async function readUse({ openUsage }: UsageSource, keyIds: readonly string[]) {
  const usage = await openUsage();
  try {
    return await usage.readKeys(keyIds);
  } catch {
    throw new UnreachableError('key usage could not be read from Redis: check npm run status');
  } finally {
    await usage.close();
  }
}

export function toUseText({ lastUsedAt, usesOfHour, refusalsOfHour, messagesOfHour, messagesOfDay }: KeyUse): string {
  if (lastUsedAt === null) return 'never used';
  const messages = messagesOfDay === 0 ? '' : `; messages in the last hour: ${messagesOfHour}, day: ${messagesOfDay}`;
  return `last used ${new Date(lastUsedAt).toISOString()}; uses in the last hour: ${usesOfHour}, refusals: ${refusalsOfHour}${messages}`;
}
