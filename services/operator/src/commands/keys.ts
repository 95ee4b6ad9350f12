import { createKey, type KeyRecord, type KeyStore, refreshKey } from '@playline/access-keys';
import { awaitStore } from '../await-store.ts';
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

export type OpenKeyStore = () => Promise<KeyStore & { ready(): Promise<boolean>; close(): Promise<void> }>;

export interface KeysContext {
  readonly openKeyStore: OpenKeyStore;
  /** ACCESS_KEY_PREFIX */
  readonly prefix: string;
}

const HELP = `usage: operator keys create --environment production|development --kind publishable|secret [--project demo] [--replace] [--json]
       operator keys list [--project demo] [--json]

create prints the key once; only its hash is kept. An environment has one live key of each kind:
--replace ends it in the same step.
list shows live and ended keys, never their text.
Needs REDIS_URL. The environment's id is <project>-<environment>.`;

const OPTIONS = {
  environment: { type: 'string' },
  kind: { type: 'string' },
  project: { type: 'string', default: 'demo' },
  replace: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
} as const;

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

export function createKeysCommand(context: KeysContext): Command {
  const run = async (args: readonly string[], terminal: Terminal): Promise<ExitCode> => {
    const { values, words } = parseOptions(args, OPTIONS, 1);
    const project = projectOf(values);
    if (words[0] === 'create') return create(context, { values, project }, terminal);
    if (words[0] === 'list') return list(context, { project, isJson: values.json === true }, terminal);
    throw new UsageError(words[0] === undefined ? 'expected create or list' : `unknown word '${words[0]}'`);
  };
  return { name: 'keys', summary: 'create and list access keys', help: HELP, run };
}

type Values = ReturnType<typeof parseOptions>['values'];

async function create(
  context: KeysContext,
  asked: { values: Values; project: string },
  terminal: Terminal,
): Promise<ExitCode> {
  const { values, project } = asked;
  const environment = choiceOf(values, 'environment', { choices: ['production', 'development'] });
  const kind = choiceOf(values, 'kind', { choices: ['publishable', 'secret'] });
  const environmentId = toEnvironmentId(project, environment);
  const store = await context.openKeyStore();
  try {
    const wanted = { projectId: project, environmentId, environment, kind };
    await awaitStore('Redis', store.ready);
    const isReplaced = values.replace === true && (await store.findLive(environmentId, kind)) !== null;
    const make = isReplaced ? refreshKey : createKey;
    const { record, key } = await make({ store, prefix: context.prefix }, wanted);
    const line = { keyId: record.keyId, environmentId, environment, kind, key };
    terminal.result(
      values.json === true ? JSON.stringify(line) : `${kind} key of ${environmentId}, shown this once:\n${key}`,
    );
  } finally {
    await store.close();
  }
  return EXIT.ok;
}

async function list(
  context: KeysContext,
  asked: { project: string; isJson: boolean },
  terminal: Terminal,
): Promise<ExitCode> {
  const store = await context.openKeyStore();
  try {
    await awaitStore('Redis', store.ready);
    for (const record of await store.list(asked.project)) {
      terminal.result(asked.isJson ? JSON.stringify(toPublicRecord(record)) : toLine(record));
    }
  } finally {
    await store.close();
  }
  return EXIT.ok;
}

/** A record without its hash, which is nobody's business. */
function toPublicRecord({ hash: _, ...record }: KeyRecord) {
  return record;
}

function toLine({ keyId, environmentId, kind, first4, last4, createdAt, revokedAt }: KeyRecord): string {
  const fate = revokedAt === null ? 'live' : `ended ${new Date(revokedAt).toISOString()}`;
  return `${keyId}  ${environmentId}  ${kind}  ${first4}…${last4}  created ${new Date(createdAt).toISOString()}  ${fate}`;
}
