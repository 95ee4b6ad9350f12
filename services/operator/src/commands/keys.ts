import { Option } from '@commander-js/extra-typings';
import {
  type Change,
  FIRST_PROJECT,
  PLAN_MAX,
  PLAN_WINDOW_S,
  type RateLimitKeyRecord,
  type SignableKeyRecord,
  type SignerPublicKey,
} from '@playline/access-keys';
import {
  type CreateCommand,
  command,
  endWith,
  jsonCommand,
  type Terminal,
  UsageError,
  wholeNumberFrom,
  yesOption,
} from '../command.ts';
import { create as createKey, type EnvironmentKeysContext, list, origins, revoke } from '../keys/subcommands.ts';
import * as rateLimitKeys from '../rate-limit-keys/subcommands.ts';
import { type RecordSources, rebuildViews } from '../records/record-access.ts';
import { type OpenLogOfTopic, passOver } from '../records/record-sources.ts';
import * as signableKeys from '../signable-keys/subcommands.ts';

export interface KeysContext extends EnvironmentKeysContext {
  readonly rateLimitKeys: RecordSources<RateLimitKeyRecord>;
  readonly signableKeys: RecordSources<SignableKeyRecord>;
  readonly kinds: readonly RecordSources<Change>[];
  readonly openAccessLog: OpenLogOfTopic;
  /** @throws UsageError or UnreachableError without SIGNER_PUBLIC_KEY */
  readonly signerKey: () => SignerPublicKey;
}

const ABOUT = `
Publishable and secret keys belong to an environment, with one live key of each kind. An ended key stops working within a
second.

A rate limit key belongs to a partner, who may have several. It sets the partner's plan for the chain API (header
x-api-key): a number of calls per window, until it expires or is revoked.

A signable key is an address of a chain. Its private key is sealed to the minter (SIGNER_PUBLIC_KEY) and never shown.

Needs REDIS_URL, KAFKA_BROKERS and SCHEMA_REGISTRY_URL, or a local stack.`;
const project = () => new Option('--project <id>', 'project of the key').default(FIRST_PROJECT);
const environment = () => new Option('--environment <name>', 'name or id of an environment, such as production');
const kind = <const K extends readonly string[]>(...kinds: K) =>
  new Option('--kind <kind>', 'kind of the key').choices(kinds);
const keyId = () => new Option('--id <id>', 'rate limit key, as list shows it');
const partner = () => new Option('--partner <name>', 'partner of a rate limit key');
const calls = () =>
  new Option('--calls <number>', `calls of a rate limit key in a window, at most ${PLAN_MAX.calls}`).argParser(
    wholeNumberFrom(1, PLAN_MAX.calls),
  );
const windowS = () =>
  new Option(
    '--window-s <seconds>',
    `window of a rate limit key, at most ${PLAN_MAX.windowS}, ${PLAN_WINDOW_S} by default`,
  ).argParser(wholeNumberFrom(1, PLAN_MAX.windowS));
const expires = () =>
  new Option('--expires <time>', 'end of a rate limit key: a date, a time with its offset, or never');

const position = <const Flags extends string>(flags: Flags, description: string) =>
  new Option(flags, description).argParser(wholeNumberFrom(0, Number.MAX_SAFE_INTEGER)).makeOptionMandatory();

const PASS_OVER = `
Shows the record and prompts for confirmation. The record before it applies again; the audit log stores who skipped it. If a
newer release wrote the record, run that release instead.`;

/** Options by kind of key; `environment` means publishable and secret keys. */
const OPTIONS_OF = {
  environment: ['environment', 'name', 'replace'],
  'rate-limit': ['partner', 'calls', 'windowS', 'expires', 'id'],
  signable: ['environment', 'name'],
} as const;

/** @throws UsageError for an option of another kind of key */
function assertFits(options: Readonly<Record<string, unknown>> & { readonly kind?: string | undefined }): void {
  const family = options.kind === 'rate-limit' || options.kind === 'signable' ? options.kind : 'environment';
  const allowed: readonly string[] = ['kind', 'project', 'json', ...OPTIONS_OF[family]];
  const unexpected = Object.keys(options).find((name) => options[name] !== undefined && !allowed.includes(name));
  if (unexpected === undefined) return;
  const flag = unexpected.replaceAll(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`);
  throw new UsageError(
    family === 'environment' ? `--${flag}: only with --kind rate-limit` : `--${flag}: not with --kind ${family}`,
  );
}

interface Work {
  readonly context: KeysContext;
  readonly terminal: Terminal;
  readonly partners: rateLimitKeys.RateLimitKeyWork;
  readonly signable: signableKeys.SignableKeyWork;
}

export const createKeysCommand =
  (context: KeysContext): CreateCommand =>
  (terminal) => {
    const { prefix, openUsage, signerKey } = context;
    const work: Work = {
      context,
      terminal,
      partners: { sources: context.rateLimitKeys, prefix, openUsage, terminal },
      signable: { sources: context.signableKeys, projects: context, signerKey, terminal },
    };
    return command('keys', 'create, list, refresh and revoke access keys')
      .addCommand(create(work))
      .addCommand(listKeys(work))
      .addCommand(refresh(work))
      .addCommand(revokeKey(work))
      .addCommand(setOrigins(work))
      .addCommand(enabling(work, 'disable', 'stop a signable key from signing'))
      .addCommand(enabling(work, 'enable', 'let a disabled signable key sign again'))
      .addCommand(rebuild(work))
      .addCommand(skip(work))
      .addHelpText('after', ABOUT);
  };

const create = ({ context, terminal, partners, signable }: Work) =>
  jsonCommand('create', 'create a key and print it once')
    .addOption(kind('publishable', 'secret', 'rate-limit', 'signable').makeOptionMandatory())
    .addOption(project())
    .addOption(environment())
    .option('--name <name>', 'what the key is called; of a signable key also its name on the chain')
    .option('--replace', 'end the live key of the environment, if there is one')
    .addOption(partner())
    .addOption(calls())
    .addOption(windowS())
    .addOption(expires())
    .action(async (options) => {
      assertFits(options);
      if (options.kind === 'rate-limit') return rateLimitKeys.create(partners, options);
      if (options.kind === 'signable') return signableKeys.create(signable, options);
      return createKey(context, { ...options, kind: options.kind, isRefresh: false }, terminal);
    });

const refresh = ({ context, terminal, partners }: Work) =>
  jsonCommand('refresh', 'end the live key and print its successor once')
    .addOption(kind('publishable', 'secret', 'rate-limit').makeOptionMandatory())
    .addOption(project())
    .addOption(environment())
    .option('--name <name>', 'what the successor is called')
    .addOption(keyId())
    .addOption(calls())
    .addOption(windowS())
    .addOption(expires())
    .action(async (options) => {
      assertFits(options);
      if (options.kind === 'rate-limit') return rateLimitKeys.refresh(partners, options);
      return createKey(context, { ...options, kind: options.kind, isRefresh: true }, terminal);
    });

const revokeKey = ({ context, terminal, partners }: Work) =>
  jsonCommand('revoke', 'end the live key without a successor')
    .addOption(kind('publishable', 'secret', 'rate-limit').makeOptionMandatory())
    .addOption(project())
    .addOption(environment())
    .addOption(keyId())
    .action(async (options) => {
      assertFits(options);
      if (options.kind === 'rate-limit') return rateLimitKeys.revoke(partners, options);
      return revoke(context, { ...options, kind: options.kind }, terminal);
    });

const listKeys = ({ context, terminal, partners, signable }: Work) =>
  jsonCommand('list', 'list live and ended keys and their use; never the text of a secret key')
    .addOption(kind('publishable', 'secret', 'rate-limit', 'signable'))
    .addOption(project())
    .addOption(environment())
    .addOption(partner())
    .action(async (options) => {
      assertFits(options);
      if (options.kind === 'rate-limit') return rateLimitKeys.list(partners, options);
      if (options.kind === 'signable') return signableKeys.list(signable, options);
      return list(context, { ...options, kind: options.kind }, terminal);
    });

const setOrigins = ({ context, terminal }: Work) =>
  jsonCommand('origins', 'show or set which web pages may use the publishable key')
    .addOption(project())
    .addOption(environment())
    .option('--origins <list>', 'origins separated by commas, such as https://game.example, or any')
    .addHelpText('after', '\nClients that send no origin, such as servers and native games, may always use the key.')
    .action((options) => origins(context, options, terminal));

const enabling = ({ signable }: Work, name: 'disable' | 'enable', description: string) =>
  jsonCommand(name, description)
    .addOption(kind('signable').makeOptionMandatory())
    .addOption(project())
    .addOption(environment())
    .requiredOption('--name <name>', 'name of the key, or its address')
    .action((options) => (name === 'disable' ? signableKeys.disable : signableKeys.enable)(signable, options));

const rebuild = ({ context, terminal }: Work) =>
  jsonCommand('rebuild', 'restore access records of all kinds in Redis from the log')
    .addHelpText('after', '\nAn unreadable log does not block the others.')
    .action(async (options) => endWith(await rebuildViews(context.kinds, options, terminal)));

const skip = ({ context: { kinds, openAccessLog, projects }, terminal }: Work) =>
  jsonCommand('pass-over', 'skip an unreadable access record')
    .requiredOption('--topic <topic>', 'topic of the record, as rebuild and /readyz name it')
    .addOption(position('--partition <number>', 'its partition'))
    .addOption(position('--offset <number>', 'its offset'))
    .addOption(yesOption())
    .addHelpText('after', PASS_OVER)
    .action(async (options) =>
      endWith(await passOver({ kinds, openAccessLog, author: projects.author }, options, terminal)),
    );
