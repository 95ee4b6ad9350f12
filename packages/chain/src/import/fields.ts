import {
  ADDRESS_EXPECTED,
  hasCodePointsAtMost,
  isBlank,
  isChainName,
  isHashText,
  isUint64Text,
  isUint256Text,
  isUuidText,
  parseAddress,
  parseTimestampMicros,
  type RejectionCode,
  type RejectionError,
  toRejectionErrors,
} from '@playline/contracts';
import { z } from 'zod';
import { MICROSECONDS_MAX } from '../cursor.ts';

const rule = (code: RejectionCode, error: string) => ({ params: { code }, error });

/** Validates a formatted string. A blank string counts as missing. */
const formatted = (isValid: (value: string) => boolean, error: string) =>
  z
    .string()
    .refine((value) => !isBlank(value), { ...rule('MISSING_REQUIRED_FIELD', 'is required'), abort: true })
    .refine(isValid, rule('INVALID_FORMAT', error));
const inLowerCase = (value: string) => value.toLowerCase();

export const address = () =>
  formatted((value) => parseAddress(value) !== null, `is not ${ADDRESS_EXPECTED}`).transform(inLowerCase);
export const hash = () => formatted(isHashText, 'is not 0x and 64 hexadecimal digits').transform(inLowerCase);
export const uuid = () => formatted(isUuidText, 'is not a UUID').transform(inLowerCase);
export const uint256 = () => formatted(isUint256Text, 'is not a whole number in decimal digits');
export const uint64 = () => formatted(isUint64Text, 'is not a whole number below 2^64 in decimal digits');

/** Rejects lone surrogates, because they would be stored as a different string. */
export const text = (max: number) =>
  z
    .string()
    .refine((value) => value.isWellFormed(), rule('INVALID_FORMAT', 'contains a lone surrogate'))
    .refine((value) => hasCodePointsAtMost(value, max), rule('INVALID_VALUE', `is longer than ${max} characters`));

export const requiredText = (max: number) =>
  text(max).refine((value) => !isBlank(value), rule('MISSING_REQUIRED_FIELD', 'is required'));

/** Parses a time into epoch microseconds. */
export const timestamp = () =>
  formatted((value) => !Number.isNaN(parseTimestampMicros(value)), 'is not an RFC 3339 timestamp')
    .transform(parseTimestampMicros)
    .refine((us) => us >= 0 && us <= MICROSECONDS_MAX, rule('INVALID_VALUE', 'is before 1970 or after 2255'));

/** Validates the chain's name. null accepts any chain. */
export const requiredChain = (chain: string | null) =>
  chain === null
    ? formatted(isChainName, 'is not a chain name')
    : z.string().refine((value) => value === chain, rule('INVALID_VALUE', 'is not the expected chain'));

export type Parsed<T> =
  | { readonly ok: true; readonly record: T }
  | { readonly ok: false; readonly errors: RejectionError[] };

type Issue = z.core.$ZodIssue;

/** Converts an unknown discriminator, which Zod reports as an issue of the union, to an issue of the member. */
function toDiscriminatorIssue(issue: Issue): Issue {
  if (issue.code !== 'invalid_union' || !('discriminator' in issue)) return issue;
  const { input } = issue;
  const name = String(issue.discriminator);
  const value =
    typeof input === 'object' && input !== null && name in input ? (input as Record<string, unknown>)[name] : undefined;
  const path = issue.path.at(-1) === name ? issue.path : [...issue.path, name];
  return { code: 'invalid_value', values: [], path, input: value, message: 'is not a known value' };
}

/** @param parentPath the value's path within the line */
export function toErrors(issues: readonly Issue[], parentPath: readonly string[] = []): RejectionError[] {
  return toRejectionErrors(
    issues.map(toDiscriminatorIssue).map((issue) => ({ ...issue, path: [...parentPath, ...issue.path] })),
  );
}
