import { IDENTITY_KEY_BYTES, IDENTITY_KINDS, type IdentityKind, ZERO_KEY } from '@playline/contracts';
import type { IdentityKeyer } from '@playline/people';
import { choiceOf, textOf, UsageError, type Values } from '../command.ts';
import { projectOf, toEnvironmentId } from '../keys/words.ts';

/** The identity that a query is about. */
export interface Subject {
  readonly environmentId: string;
  readonly key: Buffer;
  /** Null for an identity given by its key, which does not contain the kind. */
  readonly kind: IdentityKind | null;
}

const text = { type: 'string' } as const;

/** Options that name the identity, and the form of the answer. */
export const SUBJECT_OPTIONS = {
  environment: text,
  project: { type: 'string', default: 'demo' },
  kind: text,
  id: text,
  key: text,
  json: { type: 'boolean', default: false },
} as const;

/** Options of a second identity. */
export const OTHER_OPTIONS = { 'other-kind': text, 'other-id': text, 'other-key': text } as const;

/** As in tables: `<project>-<environment>`. */
const ENVIRONMENT_ID = /^(?=.{3,64}$)[a-z0-9_-]+-[a-z0-9_-]+$/;
const KEY = new RegExp(`^[0-9a-fA-F]{${2 * IDENTITY_KEY_BYTES}}$`);

/** @throws UsageError without the id, which is personal data */
export function subjectOf(values: Values, openKeyer: () => IdentityKeyer): Subject {
  const environmentId = environmentOf(values);
  return { environmentId, ...identityOf(values, { before: '', environmentId, openKeyer }) };
}

/** Null when none is given. @throws UsageError, also when it is the subject itself */
export function otherOf(values: Values, subject: Subject, openKeyer: () => IdentityKeyer): Subject | null {
  if (Object.keys(OTHER_OPTIONS).every((name) => values[name] === undefined)) return null;
  const { environmentId } = subject;
  const other = identityOf(values, { before: 'other-', environmentId, openKeyer });
  if (other.key.equals(subject.key)) throw new UsageError('the two are the same identity');
  return { environmentId, ...other };
}

/** The environment of `--environment` and `--project`. @throws UsageError */
export function environmentOf(values: Values): string {
  const given = textOf(values, 'environment') ?? '';
  if (given === 'production' || given === 'development') return toEnvironmentId(projectOf(values), given);
  if (ENVIRONMENT_ID.test(given)) return given;
  throw new UsageError('--environment: expected production, development, or an id such as demo-production');
}

interface Naming {
  /** Prefix of the option names. */
  readonly before: '' | 'other-';
  readonly environmentId: string;
  readonly openKeyer: () => IdentityKeyer;
}

function identityOf(values: Values, { before, environmentId, openKeyer }: Naming): Pick<Subject, 'key' | 'kind'> {
  const [key, id] = [textOf(values, `${before}key`), textOf(values, `${before}id`)];
  const ways = `--${before}kind and --${before}id, or --${before}key`;
  if (key !== undefined) {
    if (id !== undefined || values[`${before}kind`] !== undefined) throw new UsageError(`give ${ways}, not both`);
    return { key: parseKey(key, before), kind: null };
  }
  if (id === undefined || id.trim() === '') throw new UsageError(`which identity? ${ways}`);
  const kind = choiceOf(values, `${before}kind`, { choices: IDENTITY_KINDS });
  return { key: openKeyer()(environmentId, kind, id), kind };
}

function parseKey(given: string, before: Naming['before']): Buffer {
  const key = KEY.test(given) ? Buffer.from(given, 'hex') : null;
  if (key === null || key.equals(ZERO_KEY))
    throw new UsageError(`--${before}key: expected the ${2 * IDENTITY_KEY_BYTES} hexadecimal digits of an identity`);
  return key;
}
