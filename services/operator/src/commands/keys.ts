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
import { type OpenLogOfTopic, skipUnreadableRecord } from '../records/record-sources.ts';
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
An environment has at most one live secret key, and several live publishable keys, such as one per platform or build.
A revoked key stops working within a second. A publishable key can also stop later, so that builds that contain it keep
sending: --stops now, 24h, 7d, a date, or a time with a UTC offset. It is required if clients have used the key in the
last hour. A refreshed publishable key and its successor share one rate limit.

A rate limit key belongs to a partner and is sent in the x-api-key header. It sets the number of chain API calls per
window until the key expires or is revoked. A partner can have several keys.

A signable key is a blockchain address that signs mints. Its private key is encrypted for the minter (SIGNER_PUBLIC_KEY)
and never shown.

Requires REDIS_URL, KAFKA_BROKERS and SCHEMA_REGISTRY_URL, or a local stack.`;
const project = () => new Option('--project <id>', 'project id').default(FIRST_PROJECT);
const environment = () => new Option('--environment <name>', 'environment name or id, such as production');
const kind = <const K extends readonly string[]>(...kinds: K) => new Option('--kind <kind>', 'key kind').choices(kinds);
const keyId = () => new Option('--id <id>', 'key id, as printed by list');
const stops = () => new Option('--stops <time>', 'when a publishable key stops: now, 24h, 7d, a date or a time');
const partner = () => new Option('--partner <name>', 'partner that owns the rate limit key');
const calls = () =>
  new Option('--calls <number>', `calls per window for a rate limit key, up to ${PLAN_MAX.calls}`).argParser(
    wholeNumberFrom(1, PLAN_MAX.calls),
  );
const windowS = () =>
  new Option(
    '--window-s <seconds>',
    `window length for a rate limit key, up to ${PLAN_MAX.windowS} (default: ${PLAN_WINDOW_S})`,
  ).argParser(wholeNumberFrom(1, PLAN_MAX.windowS));
const expires = () =>
  new Option('--expires <time>', 'expiry of a rate limit key: a date, a time with a UTC offset, or never');

const position = <const Flags extends string>(flags: Flags, description: string) =>
  new Option(flags, description).argParser(wholeNumberFrom(0, Number.MAX_SAFE_INTEGER)).makeOptionMandatory();

const SKIP_RECORD = `
Shows the record and prompts for confirmation. The previous record then applies again, and the audit log records who
skipped the unreadable record. If a newer release wrote the record, use that release instead.`;

/** Options per key kind; `environment` means publishable and secret keys. */
const OPTIONS_OF = {
  environment: ['environment', 'name', 'replace', 'id', 'stops'],
  'rate-limit': ['partner', 'calls', 'windowS', 'expires', 'id'],
  signable: ['environment', 'name'],
} as const;

/** @throws UsageError for an option that the key kind does not support */
function assertSupported(options: Readonly<Record<string, unknown>> & { readonly kind?: string | undefined }): void {
  const family = options.kind === 'rate-limit' || options.kind === 'signable' ? options.kind : 'environment';
  const allowed: readonly string[] = ['kind', 'project', 'json', ...OPTIONS_OF[family]];
  const unexpected = Object.keys(options).find((name) => options[name] !== undefined && !allowed.includes(name));
  if (unexpected === undefined) return;
  const flag = unexpected.replaceAll(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`);
  throw new UsageError(
    family === 'environment'
      ? `--${flag} requires --kind rate-limit`
      : `--${flag} cannot be used with --kind ${family}`,
  );
}

interface Deps {
  readonly context: KeysContext;
  readonly terminal: Terminal;
  readonly partners: rateLimitKeys.RateLimitKeyDeps;
  readonly signable: signableKeys.SignableKeyDeps;
}

export const createKeysCommand =
  (context: KeysContext): CreateCommand =>
  (terminal) => {
    const { prefix, openUsage, signerKey } = context;
    const deps: Deps = {
      context,
      terminal,
      partners: { sources: context.rateLimitKeys, prefix, openUsage, terminal },
      signable: { sources: context.signableKeys, projects: context, signerKey, terminal },
    };
    return command('keys', 'manage access keys')
      .addCommand(create(deps))
      .addCommand(listKeys(deps))
      .addCommand(refresh(deps))
      .addCommand(revokeKey(deps))
      .addCommand(setOrigins(deps))
      .addCommand(stateCommand(deps, 'disable', 'disable a signable key'))
      .addCommand(stateCommand(deps, 'enable', 'enable a disabled signable key'))
      .addCommand(rebuild(deps))
      .addCommand(skip(deps))
      .addHelpText('after', ABOUT);
  };

const create = ({ context, terminal, partners, signable }: Deps) =>
  jsonCommand('create', 'create a key, and print it once')
    .addOption(kind('publishable', 'secret', 'rate-limit', 'signable').makeOptionMandatory())
    .addOption(project())
    .addOption(environment())
    .option('--name <name>', 'display name of the key')
    .option('--replace', 'revoke the live key of the environment, if any')
    .addOption(partner())
    .addOption(calls())
    .addOption(windowS())
    .addOption(expires())
    .action(async (options) => {
      assertSupported(options);
      if (options.kind === 'rate-limit') return rateLimitKeys.create(partners, options);
      if (options.kind === 'signable') return signableKeys.create(signable, options);
      return createKey(context, { ...options, kind: options.kind, isRefresh: false }, terminal);
    });

const refresh = ({ context, terminal, partners }: Deps) =>
  jsonCommand('refresh', 'replace a live key, and print its replacement')
    .addOption(kind('publishable', 'secret', 'rate-limit').makeOptionMandatory())
    .addOption(project())
    .addOption(environment())
    .option('--name <name>', 'display name of the new key')
    .addOption(keyId())
    .addOption(stops())
    .addOption(calls())
    .addOption(windowS())
    .addOption(expires())
    .action(async (options) => {
      assertSupported(options);
      if (options.kind === 'rate-limit') return rateLimitKeys.refresh(partners, options);
      return createKey(context, { ...options, kind: options.kind, isRefresh: true }, terminal);
    });

const revokeKey = ({ context, terminal, partners }: Deps) =>
  jsonCommand('revoke', 'revoke a live key without replacing it, or set when it stops')
    .addOption(kind('publishable', 'secret', 'rate-limit').makeOptionMandatory())
    .addOption(project())
    .addOption(environment())
    .addOption(keyId())
    .addOption(stops())
    .addHelpText('after', '\nWith --stops never, a key that was going to stop stays live.')
    .action(async (options) => {
      assertSupported(options);
      if (options.kind === 'rate-limit') return rateLimitKeys.revoke(partners, options);
      return revoke(context, { ...options, kind: options.kind }, terminal);
    });

const listKeys = ({ context, terminal, partners, signable }: Deps) =>
  jsonCommand('list', 'list live and revoked keys with their last use')
    .addOption(kind('publishable', 'secret', 'rate-limit', 'signable'))
    .addOption(project())
    .addOption(environment())
    .addOption(partner())
    .action(async (options) => {
      assertSupported(options);
      if (options.kind === 'rate-limit') return rateLimitKeys.list(partners, options);
      if (options.kind === 'signable') return signableKeys.list(signable, options);
      return list(context, { ...options, kind: options.kind }, terminal);
    });

const setOrigins = ({ context, terminal }: Deps) =>
  jsonCommand('origins', 'show or set the web origins that can use a publishable key')
    .addOption(project())
    .addOption(environment())
    .addOption(keyId())
    .option('--origins <list>', 'comma-separated origins, such as https://game.example, or any')
    .addHelpText('after', '\nClients that send no origin, such as servers and native games, can always use the key.')
    .action((options) => origins(context, options, terminal));

const stateCommand = ({ signable }: Deps, name: 'disable' | 'enable', description: string) =>
  jsonCommand(name, description)
    .addOption(kind('signable').makeOptionMandatory())
    .addOption(project())
    .addOption(environment())
    .requiredOption('--name <name>', 'key name or address')
    .action((options) => (name === 'disable' ? signableKeys.disable : signableKeys.enable)(signable, options));

const rebuild = ({ context, terminal }: Deps) =>
  jsonCommand('rebuild', 'restore all access records from the log into Redis')
    .addHelpText('after', '\nIf a log cannot be read, the records from all other logs are still restored.')
    .action(async (options) => endWith(await rebuildViews(context.kinds, options, terminal)));

const skip = ({ context: { kinds, openAccessLog, projects }, terminal }: Deps) =>
  jsonCommand('skip-record', 'skip an unreadable access record')
    .requiredOption('--topic <topic>', 'topic of the record, as reported by rebuild and /readyz')
    .addOption(position('--partition <number>', 'partition of the record'))
    .addOption(position('--offset <number>', 'offset of the record'))
    .addOption(yesOption())
    .addHelpText('after', SKIP_RECORD)
    .action(async (options) =>
      endWith(await skipUnreadableRecord({ kinds, openAccessLog, author: projects.author }, options, terminal)),
    );
