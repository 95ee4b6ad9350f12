import {
  type AccessKeyRecord,
  createKey,
  findLiveKey,
  isProjectId,
  type KeyKind,
  type KeyRecord,
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
import { type Terminal, UsageError } from '../command.ts';
import { type EnvironmentName, type ProjectSources, requireEnvironment } from '../projects/environments.ts';
import { type RecordSources, readRecords, withRecords } from '../records/record-access.ts';
import type { ChangedKey } from './demo-keys.ts';
import { readUse, toUseText, type UsageSource } from './key-use.ts';

/** What the actions on keys of environments work with. */
export interface EnvironmentKeysContext extends ProjectSources, UsageSource {
  readonly keys: RecordSources<AccessKeyRecord>;
  /** ACCESS_KEY_PREFIX */
  readonly prefix: string;
  /** Called for every change of an environment's key, so that the files of a local stack follow. */
  publish(changed: ChangedKey): Promise<void>;
}

/** Options that name an environment. */
export interface EnvironmentOptions {
  readonly project: string;
  readonly environment?: string | undefined;
}

/** Options of the actions. */
interface KeyOptions extends EnvironmentOptions {
  readonly kind: KeyKind;
  readonly name?: string | undefined;
  readonly json?: boolean | undefined;
}

export function projectOf({ project }: EnvironmentOptions): string {
  if (!isProjectId(project))
    throw new UsageError(`--project: expected 1 to ${PROJECT_ID_CHARACTERS_MAX} of a-z, 0-9, _ and -`);
  return project;
}

export function toEnvironmentId(project: string, environment: string): string {
  return `${project}-${environment}`;
}

/** The environment that the options name. @throws UsageError */
export function environmentOf(options: EnvironmentOptions): EnvironmentName {
  return { project: projectOf(options), environment: environmentNameOf(options) };
}

/** @throws UsageError for invalid options, Error when the environment does not exist */
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
    throw new UsageError('--environment: expected the name of an environment, such as production or development');
  return name;
}

/** Updates the files of a local stack, which show the keys of two environments. */
async function publish(
  context: EnvironmentKeysContext,
  { projectId, environmentId, environment, kind }: NewKey,
  key: string,
) {
  if (environmentId === toEnvironmentId(projectId, environment))
    await context.publish({ project: projectId, environment, kind, key });
}

/** Creates a key, or ends the live one and creates its successor. */
export async function create(
  context: EnvironmentKeysContext,
  options: KeyOptions & { readonly replace?: boolean | undefined; readonly isRefresh: boolean },
  terminal: Terminal,
): Promise<void> {
  const wanted = await newKeyOf(context, options);
  const { environmentId, environment, kind } = wanted;
  const { record, key } = await withRecords(context.keys, async (store) => {
    const isReplaced = options.replace === true && findLiveKey(await store.readAll(), wanted) !== null;
    const at = { store, prefix: context.prefix };
    if (options.isRefresh || isReplaced) return refreshKey(at, wanted);
    return createKey(at, wanted).catch((fault) => {
      throw isConflict(fault) ? new Error(`${fault.message} ${toReplacement(wanted)}`, { cause: fault }) : fault;
    });
  });
  const line = { keyId: record.keyId, environmentId, environment, kind, key };
  // Printed before anything else can fail: the text cannot be shown a second time.
  const text = [`${kind} key of ${environmentId}, shown this once:`, key];
  for (const shown of options.json === true ? [JSON.stringify(line)] : text) terminal.result(shown);
  await publish(context, wanted, key);
}

const isConflict = (fault: unknown): fault is PublicError =>
  fault instanceof PublicError && fault.code === 'CONFLICT_ERROR';

/** The command that ends a live key and creates its successor; `create` alone never ends one. */
function toReplacement({ projectId, environmentId, kind }: NewKey): string {
  return `npm run keys -- refresh --project ${projectId} --environment ${environmentId} --kind ${kind} ends it and prints its successor.`;
}

export async function revoke(context: EnvironmentKeysContext, options: KeyOptions, terminal: Terminal): Promise<void> {
  const wanted = (await findNamedKey(context, options)) ?? (await newKeyOf(context, options));
  const ended = await withRecords(context.keys, (store) => revokeKey({ store }, wanted));
  terminal.result(options.json === true ? JSON.stringify(toPublicRecord(ended)) : toLine(ended));
  await publish(context, wanted, '');
}

/** Shows or sets the origins of the publishable key; `any` removes the list. */
export async function origins(
  context: EnvironmentKeysContext,
  options: EnvironmentOptions & { readonly origins?: string | undefined; readonly json?: boolean | undefined },
  terminal: Terminal,
): Promise<void> {
  const kind = 'publishable';
  const { environmentId } = await newKeyOf(context, { ...options, kind });
  const given = options.origins;
  const record = await withRecords(context.keys, async (store) => {
    if (given === undefined) return findLiveKey(await store.readAll(), { environmentId, kind });
    const wanted = given === 'any' ? [] : given.split(',').map((text) => text.trim());
    return setKeyOrigins({ store }, { environmentId, origins: wanted });
  });
  if (record === null) throw new Error(`${environmentId} has no publishable key.`);
  const allowed = record.origins.length === 0 ? ['any'] : record.origins;
  for (const shown of options.json === true ? [JSON.stringify(toPublicRecord(record))] : allowed)
    terminal.result(shown);
}

/**
 * Finds the live key of an environment from the keys alone: a leaked key can be ended even without its project.
 * @returns null when the given ids match none; they may be names
 */
async function findNamedKey(context: EnvironmentKeysContext, options: KeyOptions): Promise<NewKey | null> {
  const [project, environment, { kind }] = [projectOf(options), environmentNameOf(options), options];
  const ids = [environment, toEnvironmentId(project, environment)];
  const records = keysOfProject(await readRecords(context.keys), project);
  const isMeant = (record: KeyRecord) => record.kind === kind && ids.includes(record.environmentId);
  return records.find((record) => record.revokedAt === null && isMeant(record)) ?? null;
}

export async function list(
  context: EnvironmentKeysContext,
  options: EnvironmentOptions & { readonly kind?: KeyKind | undefined; readonly json?: boolean | undefined },
  terminal: Terminal,
): Promise<void> {
  const { kind = null } = options;
  const project = projectOf(options);
  const environment = options.environment === undefined ? null : environmentNameOf(options);
  const isWanted = (record: KeyRecord) =>
    (environment === null || isOf(record, environment)) && (kind === null || record.kind === kind);
  const records = keysOfProject(await readRecords(context.keys), project).filter(isWanted);
  const ids = records.map(({ keyId }) => keyId);
  const uses = await readUse(context, ids);
  for (const record of records) {
    const use = uses.get(record.keyId) ?? NO_USE;
    const json = () => JSON.stringify({ ...toPublicRecord(record), ...use });
    terminal.result(options.json === true ? json() : `${toLine(record)}  ${toUseText(use)}`);
  }
}

/** Whether a key belongs to the environment with this name, id or kind. */
function isOf({ projectId, environmentId, environment }: KeyRecord, name: string): boolean {
  return [environment, environmentId].includes(name) || environmentId === toEnvironmentId(projectId, name);
}

/** A record without the hash of its key, because printed output may be kept by anyone. */
function toPublicRecord({ hash: _, ...record }: KeyRecord) {
  return { ...record, state: record.revokedAt === null ? 'live' : 'ended' };
}

function toLine({ keyId, environmentId, kind, first4, last4, createdAt, revokedAt }: KeyRecord): string {
  const state = revokedAt === null ? 'live' : `ended ${new Date(revokedAt).toISOString()}`;
  return `${keyId}  ${environmentId}  ${kind}  ${first4}…${last4}  created ${new Date(createdAt).toISOString()}  ${state}`;
}
