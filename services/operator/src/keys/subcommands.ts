/** Implements the subcommands of `keys` for publishable and secret keys. */
import {
  type AccessKeyRecord,
  createKey,
  findLiveKey,
  isProjectId,
  type KeyKind,
  type KeyRecord,
  type KeyUsage,
  type KeyUse,
  keysOfProject,
  type NewKey,
  NO_USE,
  PROJECT_ID_CHARACTERS_MAX,
  refreshKey,
  revokeKey,
  setKeyOrigins,
} from '@playline/access-keys';
import { isEnvironmentId } from '@playline/contracts';
import { PublicError } from '@playline/errors';
import { type JsonOption, printResult, type Terminal, UnreachableError, UsageError } from '../command.ts';
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

export async function create(
  context: EnvironmentKeysContext,
  options: KeyOptions & { readonly replace?: boolean | undefined; readonly isRefresh: boolean },
  terminal: Terminal,
): Promise<void> {
  const wanted = await newKeyOf(context, options);
  const { environmentId, environment, kind } = wanted;
  const { record, key } = await withRecords(context.keys, async (store) => {
    const isReplaced = options.replace === true && findLiveKey(await store.readAll(), wanted) !== null;
    const keyStore = { store, prefix: context.prefix };
    if (options.isRefresh || isReplaced) return refreshKey(keyStore, wanted);
    return createKey(keyStore, wanted).catch((fault) => {
      const isTaken = fault instanceof PublicError && fault.code === 'CONFLICT_ERROR';
      const flags = `--project ${wanted.projectId} --environment ${environmentId} --kind ${kind}`;
      const advice = `To replace the key, run npm run keys -- refresh ${flags}`;
      throw isTaken ? new Error(`${fault.message} ${advice}`, { cause: fault }) : fault;
    });
  });
  const line = { keyId: record.keyId, environmentId, environment, kind, key };
  // Printed before other steps can fail, because the key cannot be shown again.
  printResult(terminal, options, line, [`New ${kind} key for ${environmentId} (shown only once):`, key]);
  await publish(context, wanted, key);
}

export async function revoke(context: EnvironmentKeysContext, options: KeyOptions, terminal: Terminal): Promise<void> {
  const wanted = (await findNamedKey(context, options)) ?? (await newKeyOf(context, options));
  const ended = await withRecords(context.keys, (store) => revokeKey({ store }, wanted));
  printResult(terminal, options, toPublicRecord(ended), toLine(ended));
  await publish(context, wanted, '');
}

/** Shows or sets the allowed origins of the publishable key; `any` removes the restriction. */
export async function origins(
  context: EnvironmentKeysContext,
  options: EnvironmentOptions & JsonOption & { readonly origins?: string | undefined },
  terminal: Terminal,
): Promise<void> {
  const kind = 'publishable';
  const { environmentId } = await newKeyOf(context, { ...options, kind });
  const list = options.origins;
  const record = await withRecords(context.keys, async (store) => {
    if (list === undefined) return findLiveKey(await store.readAll(), { environmentId, kind });
    const wanted = list === 'any' ? [] : list.split(',').map((text) => text.trim());
    return setKeyOrigins({ store }, { environmentId, origins: wanted });
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

function toLine({ keyId, environmentId, kind, first4, last4, createdAt, revokedAt }: KeyRecord): string {
  const state = revokedAt === null ? 'live' : `ended ${new Date(revokedAt).toISOString()}`;
  return `${keyId}  ${environmentId}  ${kind}  ${first4}…${last4}  created ${new Date(createdAt).toISOString()}  ${state}`;
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

export function toUseText({ lastUsedAt, usesOfHour, refusalsOfHour }: KeyUse): string {
  if (lastUsedAt === null) return 'never used';
  return `last used ${new Date(lastUsedAt).toISOString()}; uses in the last hour: ${usesOfHour}, refusals: ${refusalsOfHour}`;
}
