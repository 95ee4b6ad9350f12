import { Option } from '@commander-js/extra-typings';
import { FIRST_PROJECT } from '@playline/access-keys';
import { IDENTITY_KEY_BYTES, IDENTITY_KINDS, type IdentityKind, ZERO_KEY } from '@playline/contracts';
import type { IdentityKeyer } from '@playline/people';
import { command, UsageError } from '../command.ts';
import { type EnvironmentOptions, projectOf, toEnvironmentId } from '../keys/subcommands.ts';

export interface Subject {
  readonly environmentId: string;
  readonly key: Buffer;
  /** Null if the identity was selected by key. */
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
  new Option('--environment <name>', 'environment name or id, such as production or demo-production');
export const projectOption = () => new Option('--project <id>', 'project id').default(FIRST_PROJECT);
export const keyHelp = 'identity key, as stored in the tables';
export const idHelp = 'raw id, as sent by clients; may be saved in your shell history';

export const subjectCommand = (name: string, description: string) =>
  command(name, description)
    .addOption(environmentOption().makeOptionMandatory())
    .addOption(projectOption())
    .addOption(new Option('--kind <kind>', 'identity kind').choices(IDENTITY_KINDS))
    .option('--id <id>', idHelp)
    .option('--key <hex>', keyHelp);

/** Matches `<project>-<environment>`. */
const ENVIRONMENT_ID = /^(?=.{3,64}$)[a-z0-9_-]+-[a-z0-9_-]+$/;
const KEY = new RegExp(`^[0-9a-fA-F]{${2 * IDENTITY_KEY_BYTES}}$`);

/** Error messages never contain the id, because it is personal data. @throws UsageError */
export function subjectOf(options: SubjectOptions, openKeyer: () => IdentityKeyer): Subject {
  const environmentId = environmentOf(options);
  return { environmentId, ...identityOf(options, { prefix: '', environmentId, openKeyer }) };
}

/** Parses the second identity, or returns null if none is passed. @throws UsageError */
export function otherOf(
  { otherKind: kind, otherId: id, otherKey: key }: OtherOptions,
  subject: Subject,
  openKeyer: () => IdentityKeyer,
): Subject | null {
  if (kind === undefined && id === undefined && key === undefined) return null;
  const { environmentId } = subject;
  const other = identityOf({ kind, id, key }, { prefix: 'other-', environmentId, openKeyer });
  if (other.key.equals(subject.key)) throw new UsageError('the two identities are the same');
  return { environmentId, ...other };
}

/** @throws UsageError */
export function environmentOf(options: EnvironmentOptions): string {
  const name = options.environment ?? '';
  if (name === 'production' || name === 'development') return toEnvironmentId(projectOf(options), name);
  if (ENVIRONMENT_ID.test(name)) return name;
  throw new UsageError('--environment: expected production, development, or an id such as demo-production');
}

interface IdentitySource {
  /** Option name prefix. */
  readonly prefix: '' | 'other-';
  readonly environmentId: string;
  readonly openKeyer: () => IdentityKeyer;
}

function identityOf({ kind, id, key }: IdentityOptions, { prefix, environmentId, openKeyer }: IdentitySource) {
  const expected = `--${prefix}kind and --${prefix}id, or --${prefix}key`;
  if (key !== undefined) {
    if (id !== undefined || kind !== undefined) throw new UsageError(`pass ${expected}, not both`);
    return { key: parseKey(key, prefix), kind: null };
  }
  if (id === undefined || id.trim() === '') throw new UsageError(`no identity selected: pass ${expected}`);
  const knownKind = IDENTITY_KINDS.find((each) => each === kind);
  if (knownKind === undefined) throw new UsageError(`--${prefix}kind: expected ${IDENTITY_KINDS.join(' or ')}`);
  return { key: openKeyer()(environmentId, knownKind, id), kind: knownKind };
}

function parseKey(text: string, prefix: IdentitySource['prefix']): Buffer {
  const key = KEY.test(text) ? Buffer.from(text, 'hex') : null;
  if (key === null || key.equals(ZERO_KEY))
    throw new UsageError(`--${prefix}key: expected ${2 * IDENTITY_KEY_BYTES} hexadecimal digits`);
  return key;
}
