import {
  createKey,
  type KeyRecord,
  type NewKey,
  NO_USE,
  type RateLimitKeyRecord,
  rebuildRecords,
  refreshKey,
  revokeKey,
} from '@playline/access-keys';
import { PublicError } from '@playline/errors';
import {
  type Command,
  choiceOf,
  EXIT,
  type ExitCode,
  parseOptions,
  type Terminal,
  textOf,
  UsageError,
} from '../command.ts';
import type { ChangedKey } from '../keys/demo-keys.ts';
import {
  changeKeys,
  type KeySources,
  readKeys,
  readUse,
  rebuildView,
  toUseWords,
  type UsageSource,
} from '../keys/key-access.ts';
import { type ProjectSources, requireEnvironment } from '../projects/environments.ts';
import * as rateLimitKeys from '../rate-limit-keys/words.ts';
import { RATE_LIMIT_KEY_OPTIONS } from '../rate-limit-keys/words.ts';
import { type RecordSources, withPair } from '../records/record-access.ts';

export interface KeysContext extends KeySources, ProjectSources, UsageSource {
  openLog: KeySources['openLog'];
  /** ACCESS_KEY_PREFIX */
  readonly prefix: string;
  readonly rateLimitKeys: RecordSources<RateLimitKeyRecord>;
  /** Told of every change of an environment's key, so that the records of a local stack follow. */
  publish(changed: ChangedKey): Promise<void>;
}

const HELP = `usage: operator keys create|refresh|revoke --environment E --kind publishable|secret
       operator keys list [--environment …] [--kind …]
       operator keys create --kind rate-limit --partner P --calls N [--window-s 300] [--expires 2027-01-31]
       operator keys refresh|revoke --kind rate-limit --id I
       operator keys list --kind rate-limit [--partner P]
       operator keys rebuild                                    (npm run keys -- …)

  create    makes a key and prints it, this once; an environment has one live key of each kind
            --replace ends the live one, if there is one
  refresh   ends the live key and prints its successor, this once
  revoke    ends the live key without a successor
  list      shows live and ended keys and their use, never their text
  rebuild   makes Redis equal to the logs of keys and projects: after Redis has lost data, or a command died half-way

  --project demo
  --json    results as JSON, one a line

A rate limit key belongs to a partner and to no environment; a partner may have several. It raises the limit of the chain
interface (header x-api-key) to its plan: so many calls in any window, until it expires or is revoked.

  --calls N         calls in a window, 1 to 1000000
  --window-s S      seconds of a window, 1 to 86400
  --expires T       a date, an instant with its offset, or never
  --id I            the key, as list shows it; refresh takes --calls, --window-s and --expires too, and keeps what is not given

An ended key stops within a second on every running process. An environment is meant by its name, such as production, or its
id; npm run projects shows them, and adds some.
Needs REDIS_URL, KAFKA_BROKERS and SCHEMA_REGISTRY_URL, or a stack that runs here (.playline/stack.json).`;

const OPTIONS = {
  environment: { type: 'string' },
  kind: { type: 'string' },
  project: { type: 'string', default: 'demo' },
  replace: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
  ...RATE_LIMIT_KEY_OPTIONS,
} as const;

const KINDS = { choices: ['publishable', 'secret'] } as const;
const RATE_LIMIT = 'rate-limit';

/** A name or an id. */
const ENVIRONMENT = /^[a-z0-9_-]{1,64}$/;
/** Environment ids are `[a-z0-9_-]{1,64}`; the longest suffix, `-development`, takes twelve of them. */
const PROJECT = /^[a-z0-9_-]{1,52}$/;

export function projectOf(values: Parameters<typeof textOf>[0]): string {
  const project = textOf(values, 'project') ?? '';
  if (!PROJECT.test(project)) throw new UsageError('--project: expected 1 to 52 of a-z, 0-9, _ and -');
  return project;
}

export function toEnvironmentId(project: string, environment: string): string {
  return `${project}-${environment}`;
}

type Values = ReturnType<typeof parseOptions>['values'];
type Action = (context: KeysContext, values: Values, terminal: Terminal) => Promise<void>;

export function createKeysCommand(context: KeysContext): Command {
  const run = async (args: readonly string[], terminal: Terminal): Promise<ExitCode> => {
    const { values, words } = parseOptions(args, OPTIONS, 1);
    const [word] = words;
    const action = actionOf(word, values);
    if (values.replace === true && word !== 'create') throw new UsageError('--replace: only with create');
    await action(context, { ...values, word }, terminal);
    return EXIT.ok;
  };
  return { name: 'keys', summary: 'create, list, refresh and revoke access keys', help: HELP, run };
}

const ACTIONS: Readonly<Record<string, Action>> = { create: make, refresh: make, revoke, list, rebuild };
const OF_PARTNERS: Readonly<Record<string, Action>> = { ...toActions(rateLimitKeys), rebuild };

/** @throws UsageError for a word that is none, and for options of keys of another kind */
function actionOf(word: string | undefined, values: Values): Action {
  const isOfPartner = values.kind === RATE_LIMIT;
  const actions = isOfPartner ? OF_PARTNERS : ACTIONS;
  const action = word !== undefined && Object.hasOwn(actions, word) ? actions[word] : undefined;
  if (action === undefined) {
    const expected = `expected ${Object.keys(actions).join(', ')}`;
    throw new UsageError(word === undefined ? expected : `unknown word '${word}': ${expected}`);
  }
  const strangers = isOfPartner ? ['environment', 'replace'] : Object.keys(RATE_LIMIT_KEY_OPTIONS);
  const stranger = strangers.find((name) => values[name] !== undefined && values[name] !== false);
  if (stranger === undefined) return action;
  throw new UsageError(`--${stranger}: ${isOfPartner ? 'not' : 'only'} with --kind ${RATE_LIMIT}`);
}

/** The words about rate limit keys as actions of this command. */
function toActions({ create, list, refresh, revoke }: typeof rateLimitKeys): Record<string, Action> {
  const toAction =
    (act: (work: rateLimitKeys.RateLimitKeyWork) => Promise<void>): Action =>
    ({ rateLimitKeys: sources, prefix, openUsage }, values, terminal) =>
      act({ sources, prefix, values, terminal, openUsage });
  return { create: toAction(create), refresh: toAction(refresh), revoke: toAction(revoke), list: toAction(list) };
}

/** @throws UsageError for words that cannot be, Error where there is no such environment */
async function wantedOf(context: KeysContext, values: Values): Promise<NewKey> {
  const name = { project: projectOf(values), environment: environmentNameOf(values) };
  const kind = choiceOf(values, 'kind', KINDS);
  const { project, environment } = await requireEnvironment(context, name);
  return { projectId: project.id, environmentId: environment.id, environment: environment.kind, kind };
}

function environmentNameOf(values: Values): string {
  const name = textOf(values, 'environment') ?? '';
  if (!ENVIRONMENT.test(name))
    throw new UsageError('--environment: expected the name of an environment, such as production or development');
  return name;
}

/** Tells the records of a local stack, which show the keys of two environments. */
async function publish(context: KeysContext, { projectId, environmentId, environment, kind }: NewKey, key: string) {
  if (environmentId === toEnvironmentId(projectId, environment))
    await context.publish({ project: projectId, environment, kind, key });
}

/** `create` and `refresh`. */
async function make(context: KeysContext, values: Values, terminal: Terminal): Promise<void> {
  const wanted = await wantedOf(context, values);
  const { environmentId, environment, kind } = wanted;
  const { record, key } = await changeKeys(context, async (store) => {
    const isReplaced = values.replace === true && (await store.findLive(environmentId, kind)) !== null;
    const at = { store, prefix: context.prefix, author: context.projects.author };
    if (values.word === 'refresh' || isReplaced) return refreshKey(at, wanted);
    return createKey(at, wanted).catch((fault) => {
      throw isConflict(fault) ? new Error(`${fault.message} ${toReplacement(wanted)}`, { cause: fault }) : fault;
    });
  });
  const line = { keyId: record.keyId, environmentId, environment, kind, key };
  // Printed before anything else can fail: the text cannot be had a second time.
  terminal.result(
    values.json === true ? JSON.stringify(line) : `${kind} key of ${environmentId}, shown this once:\n${key}`,
  );
  await publish(context, wanted, key);
}

const isConflict = (fault: unknown): fault is PublicError =>
  fault instanceof PublicError && fault.code === 'CONFLICT_ERROR';

/** What ends a live key and makes its successor: `create` alone never ends one. */
function toReplacement({ projectId, environmentId, kind }: NewKey): string {
  return `npm run keys -- refresh --project ${projectId} --environment ${environmentId} --kind ${kind} ends it and prints its successor.`;
}

async function revoke(context: KeysContext, values: Values, terminal: Terminal): Promise<void> {
  const wanted = (await findLiveKey(context, values)) ?? (await wantedOf(context, values));
  const ended = await changeKeys(context, (store) => revokeKey({ store, author: context.projects.author }, wanted));
  terminal.result(values.json === true ? JSON.stringify(toPublicRecord(ended)) : toLine(ended));
  await publish(context, wanted, '');
}

/**
 * The live key of an environment, asked of keys alone: one that has leaked can be ended whatever became of its project.
 * @returns null where none is found by the ids that were given: they may be names
 */
async function findLiveKey(context: KeysContext, values: Values): Promise<NewKey | null> {
  const [project, environment] = [projectOf(values), environmentNameOf(values)];
  const kind = choiceOf(values, 'kind', KINDS);
  const ids = [environment, toEnvironmentId(project, environment)];
  const records = await readKeys(context, (store) => store.list(project));
  const isMeant = (record: KeyRecord) => record.kind === kind && ids.includes(record.environmentId);
  return records.find((record) => record.revokedAt === null && isMeant(record)) ?? null;
}

async function list(context: KeysContext, values: Values, terminal: Terminal): Promise<void> {
  const project = projectOf(values);
  const environment = values.environment === undefined ? null : environmentNameOf(values);
  const kind = values.kind === undefined ? null : choiceOf(values, 'kind', KINDS);
  const isWanted = (record: KeyRecord) =>
    (environment === null || isOf(record, environment)) && (kind === null || record.kind === kind);
  const records = (await readKeys(context, (store) => store.list(project))).filter(isWanted);
  const uses = await readUse(
    context,
    records.map(({ keyId }) => keyId),
  );
  for (const record of records) {
    const use = uses.get(record.keyId) ?? NO_USE;
    terminal.result(
      values.json === true
        ? JSON.stringify({ ...toPublicRecord(record), ...use })
        : `${toLine(record)}  ${toUseWords(use)}`,
    );
  }
}

/** Whether a key is of an environment that is meant by its name, its id, or its kind. */
function isOf({ projectId, environmentId, environment }: KeyRecord, name: string): boolean {
  return [environment, environmentId].includes(name) || environmentId === toEnvironmentId(projectId, name);
}

async function rebuild(context: KeysContext, values: Values, terminal: Terminal): Promise<void> {
  const done = await rebuildView(context);
  const { keys, live, removed, ended } = done;
  const others = `${removed} that the log does not know removed, ${ended} superfluous ended`;
  terminal.result(
    values.json === true ? JSON.stringify(done) : `${keys} keys in the log, ${live} of them live; ${others}`,
  );
  await rateLimitKeys.rebuild({ sources: context.rateLimitKeys, values, terminal });
  const projects = await withPair(context.projects, (pair) => rebuildRecords(context.projects.kind, pair));
  const found = { kind: 'projects', projects: projects.records.length, removed: projects.removed };
  const text = `${found.projects} projects in the log; ${found.removed} that the log does not know removed`;
  terminal.result(values.json === true ? JSON.stringify(found) : text);
}

/** A record without its hash, which is nobody's business. */
function toPublicRecord({ hash: _, ...record }: KeyRecord) {
  return { ...record, state: record.revokedAt === null ? 'live' : 'ended' };
}

function toLine({ keyId, environmentId, kind, first4, last4, createdAt, revokedAt }: KeyRecord): string {
  const state = revokedAt === null ? 'live' : `ended ${new Date(revokedAt).toISOString()}`;
  return `${keyId}  ${environmentId}  ${kind}  ${first4}…${last4}  created ${new Date(createdAt).toISOString()}  ${state}`;
}
