import {
  type Change,
  FIRST_PROJECT,
  type RateLimitKeyRecord,
  type SignableKeyRecord,
  type SignerPublicKey,
} from '@playline/access-keys';
import {
  type Command,
  EXIT,
  type ExitCode,
  parseOptions,
  type Terminal,
  textOf,
  UsageError,
  type Values,
} from '../command.ts';
import { type EnvironmentKeysContext, environmentOf, list, make, origins, revoke } from '../keys/words.ts';
import * as rateLimitKeys from '../rate-limit-keys/words.ts';
import { RATE_LIMIT_KEY_OPTIONS } from '../rate-limit-keys/words.ts';
import type { OpensAccessLog } from '../records/access-log.ts';
import { PASS_OVER_OPTIONS, passOver } from '../records/pass-over.ts';
import type { RecordSources } from '../records/record-access.ts';
import { rebuildViews } from '../records/record-access.ts';
import * as signableKeys from '../signable-keys/words.ts';

export interface KeysContext extends EnvironmentKeysContext {
  readonly rateLimitKeys: RecordSources<RateLimitKeyRecord>;
  readonly signableKeys: RecordSources<SignableKeyRecord>;
  /** All kinds of records, for rebuilding their views. */
  readonly kinds: readonly RecordSources<Change>[];
  /** For settling a record that cannot be read. */
  readonly openAccessLog: OpensAccessLog;
  /** SIGNER_PUBLIC_KEY. @throws UsageError or UnreachableError when it is not configured */
  readonly signerKey: () => SignerPublicKey;
}

const HELP = `usage: operator keys create|refresh|revoke --environment E --kind publishable|secret [--name N]
       operator keys list [--environment …] [--kind …]
       operator keys origins --environment E [--origins https://game.example,…|any]
       operator keys create --kind rate-limit --partner P --calls N [--window-s 300] [--expires 2027-01-31]
       operator keys refresh|revoke --kind rate-limit --id I
       operator keys list --kind rate-limit [--partner P]
       operator keys create|disable|enable --kind signable --environment E --name N
       operator keys list --kind signable [--environment …]
       operator keys rebuild                                    (npm run keys -- …)
       operator keys pass-over --topic T --partition P --offset O [--yes]

  create    makes a key and prints it, this once; an environment has one live key of each kind
            --replace ends the live one, if there is one
  refresh   ends the live key and prints its successor, this once
  revoke    ends the live key without a successor
  origins   shows or sets whose pages may use the publishable key: pages of other origins are refused within a second;
            servers and clients that are no browser send no origin and may always use the key
  list      shows live and ended keys and their use; of a secret key never its text
  rebuild   makes Redis equal to the logs of keys, projects and all other records of access, after Redis has lost data.
            An unreadable log does not block the others
  pass-over skips one record of access that no process here can read, as named by rebuild, the logs of the services and
            /readyz. The record before it applies again, and the audit records who did so. The command shows that
            record and asks for confirmation. If a newer release wrote the record, run that release instead

  --project demo
  --json    results as JSON, one a line

A rate limit key belongs to a partner and to no environment; a partner may have several. It raises the limit of the chain
interface (header x-api-key) to its plan: so many calls in any window, until it expires or is revoked.

  --calls N         calls in a window, 1 to 1000000
  --window-s S      seconds of a window, 1 to 86400
  --expires T       a date, an instant with its offset, or never
  --id I            the key, as list shows it; refresh takes --calls, --window-s and --expires too, and keeps what is not given

A signable key is an address of a chain whose private key is sealed to the process that signs (SIGNER_PUBLIC_KEY) before
anybody has it: it is never shown, and disable ends its use until enable. --name is what it is called, there also its address.

An ended key stops within a second on every running process. An environment is meant by its name, such as production, or its
id; npm run projects shows them, and adds some.
Needs REDIS_URL, KAFKA_BROKERS and SCHEMA_REGISTRY_URL, or a stack that runs here (.playline/stack.json).`;

const OPTIONS = {
  environment: { type: 'string' },
  kind: { type: 'string' },
  project: { type: 'string', default: FIRST_PROJECT },
  replace: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
  name: { type: 'string' },
  origins: { type: 'string' },
  ...PASS_OVER_OPTIONS,
  ...RATE_LIMIT_KEY_OPTIONS,
} as const;

/** Options of all kinds of keys. */
const OF_ALL: readonly string[] = ['kind', 'project', 'json'];

type Action = (context: KeysContext, values: Values, terminal: Terminal) => Promise<ExitCode>;

export function createKeysCommand(context: KeysContext): Command {
  const run = (args: readonly string[], terminal: Terminal): Promise<ExitCode> => {
    const { values, words } = parseOptions(args, OPTIONS, 1);
    const [word] = words;
    const action = actionOf(word, values);
    return action(context, { ...values, word }, terminal);
  };
  return { name: 'keys', summary: 'create, list, refresh and revoke access keys', help: HELP, run };
}

/** The actions of one kind of keys, and the options that they accept. */
interface KindOfKeys {
  readonly words: Readonly<Record<string, Action>>;
  readonly options: readonly string[];
}

const rebuild: Action = (context, values, terminal) =>
  rebuildViews(context.kinds, { terminal, json: values.json === true });

const passingOver: Action = (context, values, terminal) => {
  const { kinds, openAccessLog } = context;
  return passOver({ kinds, openAccessLog, author: context.projects.author }, values, terminal);
};

/** An action that ends with 0 unless it throws. */
const toAction =
  (act: (context: KeysContext, values: Values, terminal: Terminal) => Promise<void>): Action =>
  async (context, values, terminal) => {
    await act(context, values, terminal);
    return EXIT.ok;
  };

const toPartnersAction = (act: (work: rateLimitKeys.RateLimitKeyWork) => Promise<void>) =>
  toAction(({ rateLimitKeys: sources, prefix, openUsage }, values, terminal) =>
    act({ sources, prefix, values, terminal, openUsage }),
  );

const toSignableAction = (act: (work: signableKeys.SignableKeyWork) => Promise<void>) =>
  toAction((context, values, terminal) => {
    const { signableKeys: sources, signerKey } = context;
    return act({ sources, projects: context, signerKey, environment: environmentOf, values, terminal });
  });

const OF_ENVIRONMENTS: KindOfKeys = {
  words: {
    create: toAction(make),
    refresh: toAction(make),
    revoke: toAction(revoke),
    list: toAction(list),
    origins: toAction(origins),
    rebuild,
    'pass-over': passingOver,
  },
  options: ['environment', 'replace', 'name', 'origins', ...Object.keys(PASS_OVER_OPTIONS)],
};

/** Kinds of keys other than the live key of an environment. */
const OTHER_KINDS: Readonly<Record<string, KindOfKeys>> = {
  'rate-limit': {
    words: {
      create: toPartnersAction(rateLimitKeys.create),
      refresh: toPartnersAction(rateLimitKeys.refresh),
      revoke: toPartnersAction(rateLimitKeys.revoke),
      list: toPartnersAction(rateLimitKeys.list),
      rebuild,
    },
    options: Object.keys(RATE_LIMIT_KEY_OPTIONS),
  },
  signable: {
    words: {
      create: toSignableAction(signableKeys.create),
      disable: toSignableAction(signableKeys.disable),
      enable: toSignableAction(signableKeys.enable),
      list: toSignableAction(signableKeys.list),
    },
    options: ['environment', 'name'],
  },
};

/** @throws UsageError for an unknown action, and for options that belong to another kind of keys */
function actionOf(word: string | undefined, values: Values): Action {
  const kind = textOf(values, 'kind');
  const isOther = kind !== undefined && Object.hasOwn(OTHER_KINDS, kind);
  const { words, options } = (isOther ? OTHER_KINDS[kind] : undefined) ?? OF_ENVIRONMENTS;
  const action = word !== undefined && Object.hasOwn(words, word) ? words[word] : undefined;
  if (action === undefined) {
    const expected = `expected ${Object.keys(words).join(', ')}`;
    throw new UsageError(word === undefined ? expected : `unknown word '${word}': ${expected}`);
  }
  const isGiven = (name: string) => values[name] !== undefined && values[name] !== false;
  const stranger = Object.keys(OPTIONS).find((name) => isGiven(name) && ![...OF_ALL, ...options].includes(name));
  if (stranger !== undefined) throw new UsageError(`--${stranger}: ${reasonOf(stranger, isOther ? kind : null)}`);
  const settling = Object.keys(PASS_OVER_OPTIONS).find(isGiven);
  if (settling !== undefined && word !== 'pass-over') throw new UsageError(`--${settling}: only with pass-over`);
  if (values.replace === true && word !== 'create') throw new UsageError('--replace: only with create');
  if (values.origins !== undefined && word !== 'origins') throw new UsageError('--origins: only with origins');
  if (values.name !== undefined && !NAMED.includes(word ?? ''))
    throw new UsageError(`--name: only with ${NAMED.join(', ')}`);
  return action;
}

/** Actions that set the name of a key. */
const NAMED = ['create', 'refresh', 'disable', 'enable'];

/** Why an option does not fit a kind of keys; `kind` is null for keys of environments. */
function reasonOf(option: string, kind: string | null): string {
  if (kind !== null) return `not with --kind ${kind}`;
  const owner = Object.keys(OTHER_KINDS).find((name) => OTHER_KINDS[name]?.options.includes(option));
  return `only with --kind ${owner}`;
}
