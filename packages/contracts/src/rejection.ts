import { z } from 'zod';
import { REJECTION_CODES, type RejectionCode } from './enumerations.ts';

/** Contract, "RejectionError". The set of codes is open, so the schema takes any text. */
export const rejectionErrorSchema = z
  .object({
    field: z
      .string()
      .meta({ description: 'Offending property, nested ones with a dot; `message` for the whole message' }),
    code: z.string().meta({ description: `Open set; known: ${REJECTION_CODES.join(', ')}` }),
    message: z.string().meta({ description: 'For people; the wording may change' }),
  })
  .meta({ id: 'RejectionError' });

/** Contract, "MessageRejection". */
export const messageRejectionSchema = z
  .object({ messageId: z.string(), errors: z.array(rejectionErrorSchema).min(1) })
  .meta({ id: 'MessageRejection' });

export interface RejectionError {
  field: string;
  code: RejectionCode;
  message: string;
}

export interface MessageRejection {
  messageId: string;
  errors: RejectionError[];
}

/** Name of the field when the message as a whole is at fault. */
export const WHOLE_MESSAGE = 'message';

/** Codes of the error envelope: contract, "Error envelope". */
export const ENVELOPE_CODES = [
  'VALIDATION_ERROR',
  'UNAUTHORISED_REQUEST',
  'AUTHENTICATION_ERROR',
  'RESOURCE_NOT_FOUND',
  'CONFLICT_ERROR',
  'TOO_MANY_REQUESTS_ERROR',
  'INTERNAL_SERVER_ERROR',
] as const;

/** Contract, "Error envelope". */
export const errorEnvelopeSchema = z
  .object({
    message: z.string(),
    link: z.string().meta({ description: 'Page that helps to resolve the error' }),
    trace_id: z.string(),
    code: z.enum(ENVELOPE_CODES),
    details: z.record(z.string(), z.unknown()).nullable(),
  })
  .meta({ id: 'ErrorEnvelope' });

/** The members of a zod issue that are read here. Parse with `reportInput: true`. */
type Issue = Pick<z.core.$ZodIssue, 'code' | 'path' | 'message' | 'input'> & {
  params?: Record<string, unknown> | undefined;
};

/** True for '' and for text of white space alone. */
export function isBlank(text: string): boolean {
  return text.trim() === '';
}

const isAbsent = (value: unknown): boolean => value === undefined || value === null;

function isRejectionCode(value: unknown): value is RejectionCode {
  return REJECTION_CODES.some((code) => code === value);
}

/** Code for a value outside its enumeration. `type` has its own code and is required, so blank means missing there. */
function enumerationCode(field: string, input: unknown): RejectionCode {
  if (isAbsent(input)) return 'MISSING_REQUIRED_FIELD';
  if (typeof input !== 'string' || !input.isWellFormed()) return 'INVALID_FORMAT';
  if (field !== 'type') return 'INVALID_ENUM';
  return isBlank(input) ? 'MISSING_REQUIRED_FIELD' : 'UNSUPPORTED_TYPE';
}

/** Code for a value of the wrong type. */
function typeCode(field: string, input: unknown): RejectionCode {
  if (field === WHOLE_MESSAGE) return 'INVALID_FORMAT';
  if (isAbsent(input)) return 'MISSING_REQUIRED_FIELD';
  // JSON text such as 1e999 is a number that no double can represent.
  return typeof input === 'number' && !Number.isFinite(input) ? 'INVALID_VALUE' : 'INVALID_FORMAT';
}

function codeOf(issue: Issue, field: string): RejectionCode {
  const own = issue.params?.code;
  if (isRejectionCode(own)) return own;
  if (issue.code === 'invalid_value') return enumerationCode(field, issue.input);
  return issue.code === 'invalid_type' ? typeCode(field, issue.input) : 'INVALID_VALUE';
}

function wordsOf(code: RejectionCode, field: string, issue: Issue): string {
  if (code === 'MISSING_REQUIRED_FIELD') return `${field} is required`;
  return issue.message.startsWith(field) ? issue.message : `${field}: ${issue.message}`;
}

/**
 * Maps zod issues of one message to errors in the contract's shape, each field and code once.
 * A custom issue may carry its code as `params.code`.
 */
export function toRejectionErrors(issues: readonly Issue[]): RejectionError[] {
  const errors = issues.map((issue) => {
    const field = issue.path.length === 0 ? WHOLE_MESSAGE : issue.path.join('.');
    const code = codeOf(issue, field);
    return { field, code, message: wordsOf(code, field, issue) };
  });
  return distinctErrors(errors);
}

/** Keeps the first error of each field and code. */
export function distinctErrors(errors: readonly RejectionError[]): RejectionError[] {
  const seen = new Map<string, RejectionError>();
  for (const error of errors) {
    const name = `${error.field} ${error.code}`;
    if (!seen.has(name)) seen.set(name, error);
  }
  return [...seen.values()];
}
