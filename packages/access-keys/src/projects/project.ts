import { randomInt } from 'node:crypto';
import {
  type MessageRate,
  type ProjectEnvironment,
  type ProjectRecord,
  projectCodec,
  TOPICS,
} from '@playline/contracts';
import { PublicError } from '@playline/errors';
import type { KeyEnvironment } from '../keys/key-text.ts';
import type { RecordKind } from '../records/record-log.ts';
import { type Content, type RecordStore, toName } from '../records/record-store.ts';

export type { MessageRate, ProjectEnvironment, ProjectRecord } from '@playline/contracts';

/** Projects, one record per project including its environments. */
export const PROJECTS: RecordKind<ProjectRecord> = {
  name: 'projects',
  topic: TOPICS.projects.name,
  codec: projectCodec,
  idOf: ({ id }) => id,
};

export interface OwnedEnvironment {
  readonly project: ProjectRecord;
  readonly environment: ProjectEnvironment;
}

/** Finds a project by id, or by name if only one live project has this name. */
export function findProject(projects: readonly ProjectRecord[], idOrName: string): ProjectRecord | null {
  const byId = projects.find(({ id }) => id === idOrName);
  if (byId !== undefined) return byId;
  const named = projects.filter(({ name, state }) => name === idOrName && state === 'live');
  return named.length === 1 ? named[0]! : null;
}

export const findEnvironment = ({ environments }: ProjectRecord, nameOrId: string): ProjectEnvironment | null =>
  environments.find(({ id, name }) => id === nameOrId || name === nameOrId) ?? null;

/** Returns the effective rate: the administrator's cap or the default, lowered by the project's limit if it has one. */
export function rateOf({ cap, limit }: Pick<ProjectEnvironment, 'cap' | 'limit'>, setting: MessageRate): MessageRate {
  const allowed = cap ?? setting;
  if (limit === null) return allowed;
  return { perSecond: Math.min(allowed.perSecond, limit.perSecond), burst: Math.min(allowed.burst, limit.burst) };
}

export interface ProjectContext {
  readonly store: RecordStore<ProjectRecord>;
}

export interface NewEnvironment {
  /** Contains only `[a-z0-9_-]`. The environment id is `<project id>-<name>`. */
  readonly name: string;
  readonly kind: KeyEnvironment;
}

export interface NewProject {
  readonly name: string;
  /** Default: a random id. */
  readonly id?: string | undefined;
  readonly environments: readonly NewEnvironment[];
}

export const DEFAULT_ENVIRONMENTS: readonly NewEnvironment[] = [
  { name: 'production', kind: 'production' },
  { name: 'development', kind: 'development' },
];

const NAME = /^[a-z0-9_-]+$/;
/** Limited, because every event and key stores the id. */
const ENVIRONMENT_ID_CHARACTERS_MAX = 64;
/** Leaves 12 characters for the `-development` suffix. */
export const PROJECT_ID_CHARACTERS_MAX = 52;
/** Excludes easily confused characters. 12 characters encode 60 bits. */
const ID_CHARACTERS = 'abcdefghijkmnpqrstuvwxyz23456789';
const RANDOM_ID_CHARACTERS = 12;

/** @throws PublicError VALIDATION_ERROR for an invalid name or id; CONFLICT_ERROR for an id that is or was in use */
export async function createProject({ store }: ProjectContext, wanted: NewProject): Promise<ProjectRecord> {
  const id = wanted.id ?? createRandomId();
  assertId(id);
  const name = toProjectName(wanted.name);
  return store.change((projects) => {
    if (projects.some((project) => project.id === id)) throw conflict(`The id ${id} is already in use.`, { id });
    return makeProject({ id, name, environments: wanted.environments }, projects);
  });
}

function makeProject(
  { id, name, environments: wanted }: NewProject & { readonly id: string },
  projects: readonly ProjectRecord[],
): Content<ProjectRecord> {
  const environments: ProjectEnvironment[] = [];
  for (const each of wanted) environments.push(makeEnvironment({ id, environments }, each, projects));
  const settings = { timeZone: 'UTC', safeProperties: [], alertWebhook: '', alertEmails: [], alertKeys: [] };
  return { id, name, environments, state: 'live', ...settings, createdAt: Date.now() };
}

export const FIRST_PROJECT = 'demo';

/** Creates the first project of a new deployment. */
export async function createFirstProject({ store }: ProjectContext): Promise<void> {
  await store.change((projects) => {
    if (projects.length > 0) return null;
    return makeProject({ id: FIRST_PROJECT, name: FIRST_PROJECT, environments: DEFAULT_ENVIRONMENTS }, projects);
  });
}

/** @throws PublicError see `createProject` and `changeProject` */
export function addEnvironment(
  context: ProjectContext,
  { project, ...wanted }: NewEnvironment & { readonly project: string },
): Promise<ProjectRecord> {
  return changeProject(context, project, (record, projects) => ({
    ...record,
    environments: [...record.environments, makeEnvironment(record, wanted, projects)],
  }));
}

/** Renames a project without changing its id. @throws PublicError see `changeProject` */
export function renameProject(context: ProjectContext, project: string, name: string): Promise<ProjectRecord> {
  const newName = toProjectName(name);
  return changeProject(context, project, (record) => ({ ...record, name: newName }));
}

/** Archives a project permanently. Nothing more can be created in the project, and its ids are never reused. */
export const archiveProject = (context: ProjectContext, project: string): Promise<ProjectRecord> =>
  changeProject(context, project, (record) => ({ ...record, state: 'archived' }));

/** An absent setting is unchanged. */
export interface AnalysisSettings {
  /** IANA name, such as `Europe/Berlin`. */
  readonly timeZone?: string | undefined;
  readonly safeProperties?: readonly string[] | undefined;
}

export const SAFE_PROPERTIES_MAX = 200;
const PROPERTY_NAME_CHARACTERS_MAX = 200;
/** IANA names. */
export const TIME_ZONES: ReadonlySet<string> = new Set(['UTC', ...Intl.supportedValuesOf('timeZone')]);

/**
 * Sets the time zone of days for analysts, and the properties that analysts without raw ids may read.
 * @throws PublicError VALIDATION_ERROR for an unknown time zone or an invalid name; see `changeProject`
 */
export function setAnalysisSettings(
  context: ProjectContext,
  project: string,
  { timeZone, safeProperties }: AnalysisSettings,
): Promise<ProjectRecord> {
  if (timeZone !== undefined && !TIME_ZONES.has(timeZone))
    throw invalid(`The time zone ${timeZone} is unknown. Use an IANA name such as Europe/Berlin.`, { timeZone });
  const names = safeProperties && [...new Set(safeProperties)].sort();
  if (names !== undefined && names.length > SAFE_PROPERTIES_MAX)
    throw invalid(`Declare at most ${SAFE_PROPERTIES_MAX} properties.`, { 'safe-properties': 'count' });
  const wrong = names?.find((name) => name === '' || name.length > PROPERTY_NAME_CHARACTERS_MAX);
  if (wrong !== undefined)
    throw invalid(`A property name must have 1 to ${PROPERTY_NAME_CHARACTERS_MAX} characters.`, {
      'safe-properties': 'name',
    });
  return changeProject(context, project, (record) => ({
    ...record,
    timeZone: timeZone ?? record.timeZone,
    safeProperties: names ?? record.safeProperties,
  }));
}

/** Where the alerts of a project are sent. */
export interface AlertTargets {
  /** Empty if none is set. */
  readonly alertWebhook: string;
  readonly alertEmails: readonly string[];
}

/** Records from older releases have no targets. */
export function alertTargetsOf(project: ProjectRecord): AlertTargets {
  const { alertWebhook = '', alertEmails = [] } = project as Partial<ProjectRecord>;
  return { alertWebhook, alertEmails };
}

export const ALERT_EMAILS_MAX = 10;
const WEBHOOK_CHARACTERS_MAX = 500;
/** Excludes the characters that separate addresses or quote names. */
const EMAIL = /^[^\s@<>()[\]:;,"\\]{1,64}@[a-z0-9.-]{1,255}$/i;

/** @throws PublicError VALIDATION_ERROR for an invalid URL or address; see `changeProject` */
export function setAlertTargets(
  context: ProjectContext,
  project: string,
  wanted: AlertTargets,
): Promise<ProjectRecord> {
  const alertWebhook = wanted.alertWebhook.trim();
  const alertEmails = [...new Set(wanted.alertEmails)];
  if (alertWebhook !== '' && !isWebhook(alertWebhook))
    throw invalid('The webhook must be an http or https URL without a user, a password or a fragment.', {
      webhook: 'URL',
    });
  if (alertEmails.length > ALERT_EMAILS_MAX)
    throw invalid(`Enter at most ${ALERT_EMAILS_MAX} e-mail addresses.`, { emails: 'count' });
  const wrong = alertEmails.find((each) => !EMAIL.test(each));
  if (wrong !== undefined)
    throw invalid(`${wrong} is not an e-mail address. Enter one address per line.`, { emails: 'address' });
  return changeProject(context, project, (record) => ({ ...record, alertWebhook, alertEmails }));
}

/** A replaced key continues to sign for this long, so that receivers can change to the new key. */
export const ALERT_KEY_OVERLAP_MS = 24 * 3_600_000;
/** Each key adds a signature to every request. */
const ALERT_KEYS_MAX = 5;

/** Returns the times at which the keys that sign alerts were created, the newest first; 0 for a project's original key. */
export function alertKeysOf(project: ProjectRecord, nowMs: number): number[] {
  const { alertKeys = [] } = project as Partial<ProjectRecord>;
  const all = [0, ...alertKeys];
  return all.filter((_, index) => (all[index + 1] ?? nowMs) > nowMs - ALERT_KEY_OVERLAP_MS).reverse();
}

/** @throws PublicError CONFLICT_ERROR after too many replacements within a day; see `changeProject` */
export function replaceAlertKey(context: ProjectContext, project: string): Promise<ProjectRecord> {
  return changeProject(context, project, (record) => {
    const createdAt = Date.now();
    const current = alertKeysOf(record, createdAt);
    if (current.length >= ALERT_KEYS_MAX)
      throw conflict(`Only ${ALERT_KEYS_MAX - 1} replacements per day are allowed. Try again later.`, { project });
    return { ...record, alertKeys: [createdAt, ...current.filter((time) => time > 0)].reverse() };
  });
}

function isWebhook(text: string): boolean {
  const url = text.length > WEBHOOK_CHARACTERS_MAX ? null : URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) return false;
  return url.username === '' && url.password === '' && url.hash === '';
}

/** Null removes a rate; an absent rate is unchanged. */
export interface WantedRates {
  readonly cap?: MessageRate | null;
  readonly limit?: MessageRate | null;
}

/** @throws PublicError RESOURCE_NOT_FOUND for an unknown environment, VALIDATION_ERROR for a limit above the cap */
export function setRates(
  context: ProjectContext,
  { project, environment }: { readonly project: string; readonly environment: string },
  rates: WantedRates,
): Promise<ProjectRecord> {
  return changeProject(context, project, (record) => {
    const found = findEnvironment(record, environment);
    if (found === null) throw notFound(`The project ${record.id} has no environment ${environment}.`, { environment });
    const changed = { ...found, ...rates };
    // A new cap may be below the existing limit; the cap then takes precedence.
    if (rates.limit !== undefined && isAbove(changed.limit, changed.cap))
      throw invalid('The limit must not be above the cap.', { environment: found.id });
    return { ...record, environments: record.environments.map((each) => (each === found ? changed : each)) };
  });
}

const isAbove = (limit: MessageRate | null, cap: MessageRate | null): boolean =>
  limit !== null && cap !== null && (limit.perSecond > cap.perSecond || limit.burst > cap.burst);

/** @throws PublicError RESOURCE_NOT_FOUND for an unknown project, CONFLICT_ERROR for an archived project */
async function changeProject(
  { store }: ProjectContext,
  idOrName: string,
  change: (record: ProjectRecord, projects: readonly ProjectRecord[]) => Content<ProjectRecord>,
): Promise<ProjectRecord> {
  return store.change((projects) => {
    const record = findProject(projects, idOrName);
    if (record === null) throw notFound(`The project ${idOrName} does not exist.`, { project: idOrName });
    if (record.state === 'archived') throw conflict(`The project ${record.id} is archived.`, { project: record.id });
    return change(record, projects);
  });
}

function makeEnvironment(
  project: Pick<ProjectRecord, 'id' | 'environments'>,
  { name, kind }: NewEnvironment,
  projects: readonly ProjectRecord[],
): ProjectEnvironment {
  const id = `${project.id}-${name}`;
  if (!NAME.test(name) || id.length > ENVIRONMENT_ID_CHARACTERS_MAX)
    throw invalid(`An environment name may contain a-z, 0-9, _ and -. The id ${id} may have at most 64 characters.`, {
      name,
    });
  const others = projects.filter((each) => each.id !== project.id);
  // Project `a` with environment `b-c` and project `a-b` with environment `c` would have the same environment id.
  const isTaken = others.some((each) => each.environments.some((environment) => environment.id === id));
  if (isTaken || project.environments.some((each) => each.id === id || each.name === name))
    throw conflict(`The environment ${id} already exists.`, { environment: id });
  return { id, name, kind, cap: null, limit: null, createdAt: Date.now() };
}

const toProjectName = (name: string) => toName(name, 'a project', { name: 'name' });

export const isProjectId = (id: string): boolean => NAME.test(id) && id.length <= PROJECT_ID_CHARACTERS_MAX;

function assertId(id: string): void {
  if (isProjectId(id)) return;
  throw invalid(`A project id must have 1 to ${PROJECT_ID_CHARACTERS_MAX} characters from a-z, 0-9, _ and -.`, { id });
}

function createRandomId(): string {
  const characters = Array.from({ length: RANDOM_ID_CHARACTERS }, () => ID_CHARACTERS[randomInt(ID_CHARACTERS.length)]);
  return `p${characters.join('')}`;
}

type Details = Readonly<Record<string, string>>;
const invalid = (message: string, details: Details) => new PublicError('VALIDATION_ERROR', { message, details });
const conflict = (message: string, details: Details) => new PublicError('CONFLICT_ERROR', { message, details });
const notFound = (message: string, details: Details) => new PublicError('RESOURCE_NOT_FOUND', { message, details });
