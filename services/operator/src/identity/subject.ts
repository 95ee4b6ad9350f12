import { Option } from '@commander-js/extra-typings';
import { FIRST_PROJECT } from '@playline/access-keys';
import { IDENTITY_KEY_BYTES, IDENTITY_KINDS, type IdentityKind, ZERO_KEY } from '@playline/contracts';
import type { IdentityKeyer } from '@playline/people';
import { command, UsageError } from '../command.ts';
import { type EnvironmentOptions, projectOf, toEnvironmentId } from '../keys/subcommands.ts';

export interface Subject {
  readonly environmentId: string;
  readonly key: Buffer;
  /** Null for an identity given by its key. */
  readonly kind: IdentityKind | null;
}

interface IdentityOptions {
  readonly kind?: string | undefined;
  readonly id?: string | undefined;
  readonly key?: string | undefined;
}

export interface SubjectOptions extends EnvironmentOptions, IdentityOptions {}

export interface OtherOptions {
  readonly otherKind?: string | undefined;
  readonly otherId?: string | undefined;
  readonly otherKey?: string | undefined;
}

export const environmentOption = () =>
  new Option('--environment <name>', 'production, development, or the id of an environment, such as demo-production');
export const projectOption = () => new Option('--project <id>', 'project of the environment').default(FIRST_PROJECT);
export const keyHelp = 'identity key as in the tables; needs no pepper';
export const idHelp = 'id as clients send it; your shell may record it';

export const subjectCommand = (name: string, description: string) =>
  command(name, description)
    .addOption(environmentOption().makeOptionMandatory())
    .addOption(projectOption())
    .addOption(new Option('--kind <kind>', 'kind of the id').choices(IDENTITY_KINDS))
    .option('--id <id>', idHelp)
    .option('--key <hex>', keyHelp);

/** As in the tables: `<project>-<environment>`. */
const ENVIRONMENT_ID = /^(?=.{3,64}$)[a-z0-9_-]+-[a-z0-9_-]+$/;
const KEY = new RegExp(`^[0-9a-fA-F]{${2 * IDENTITY_KEY_BYTES}}$`);

/** Errors never contain the id, which is personal data. @throws UsageError */
export function subjectOf(options: SubjectOptions, openKeyer: () => IdentityKeyer): Subject {
  const environmentId = environmentOf(options);
  return { environmentId, ...identityOf(options, { before: '', environmentId, openKeyer }) };
}

/** @returns null without a second identity @throws UsageError */
export function otherOf(
  { otherKind: kind, otherId: id, otherKey: key }: OtherOptions,
  subject: Subject,
  openKeyer: () => IdentityKeyer,
): Subject | null {
  if (kind === undefined && id === undefined && key === undefined) return null;
  const { environmentId } = subject;
  const other = identityOf({ kind, id, key }, { before: 'other-', environmentId, openKeyer });
  if (other.key.equals(subject.key)) throw new UsageError('both are the same identity');
  return { environmentId, ...other };
}

/** @throws UsageError */
export function environmentOf(options: EnvironmentOptions): string {
  const given = options.environment ?? '';
  if (given === 'production' || given === 'development') return toEnvironmentId(projectOf(options), given);
  if (ENVIRONMENT_ID.test(given)) return given;
  throw new UsageError('--environment: expected production, development, or an id such as demo-production');
}

interface IdentitySource {
  /** Prefix of the option names. */
  readonly before: '' | 'other-';
  readonly environmentId: string;
  readonly openKeyer: () => IdentityKeyer;
}

function identityOf({ kind, id, key }: IdentityOptions, { before, environmentId, openKeyer }: IdentitySource) {
  const ways = `--${before}kind and --${before}id, or --${before}key`;
  if (key !== undefined) {
    if (id !== undefined || kind !== undefined) throw new UsageError(`use ${ways}, not both`);
    return { key: parseKey(key, before), kind: null };
  }
  if (id === undefined || id.trim() === '') throw new UsageError(`no identity is given: use ${ways}`);
  const known = IDENTITY_KINDS.find((each) => each === kind);
  if (known === undefined) throw new UsageError(`--${before}kind: expected ${IDENTITY_KINDS.join(' or ')}`);
  return { key: openKeyer()(environmentId, known, id), kind: known };
}

function parseKey(given: string, before: IdentitySource['before']): Buffer {
  const key = KEY.test(given) ? Buffer.from(given, 'hex') : null;
  if (key === null || key.equals(ZERO_KEY))
    throw new UsageError(`--${before}key: expected the ${2 * IDENTITY_KEY_BYTES} hexadecimal digits of an identity`);
  return key;
}
