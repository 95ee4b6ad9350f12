import { z } from 'zod';
import {
  CONSENT_STATUSES,
  CONTEXT_CODE_POINTS_MAX,
  ID_CODE_POINTS_MAX,
  IDENTITY_TYPES,
  MESSAGE_TYPES,
  REJECTION_CODES,
  type RejectionCode,
  SURFACES,
} from './limits.ts';
import { isJsonObject, isUuidText, parseTimestamp, type TimeWindow } from './texts.ts';

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

/** Field of an error of the message as a whole. */
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
  expected?: string;
  values?: readonly unknown[];
};

/** What is wrong with a value. Every validation message is the path of the value and one of these texts. */
const WRONG = {
  missing: 'is required',
  type: (name: string) => `is not ${/^[aeiou]/.test(name) ? 'an' : 'a'} ${name}`,
  option: (values: readonly unknown[]) => `is not one of ${values.join(', ')}`,
  surrogate: 'holds a lone surrogate',
  length: (max: number) => `is longer than ${max} characters`,
} as const;

/** What is wrong with a required text, to be written after its path; null for a valid text. */
export function wrongTextOf(value: unknown, codePointsMax: number): string | null {
  if (isMissing(value)) return WRONG.missing;
  if (typeof value !== 'string') return WRONG.type('string');
  if (!value.isWellFormed()) return WRONG.surrogate;
  return hasCodePointsAtMost(value, codePointsMax) ? null : WRONG.length(codePointsMax);
}

/** What is wrong with a value that is none of `values`, to be written after its path. */
export const wrongOption = WRONG.option;

/** True for '' and for white space alone. */
export function isBlank(text: string): boolean {
  return text.trim() === '';
}

const isAbsent = (value: unknown): boolean => value === undefined || value === null;

function isRejectionCode(value: unknown): value is RejectionCode {
  return REJECTION_CODES.some((code) => code === value);
}

/** `type` has its own code, and is required: blank means missing. */
function enumerationCode(field: string, input: unknown): RejectionCode {
  if (isAbsent(input)) return 'MISSING_REQUIRED_FIELD';
  if (typeof input !== 'string' || !input.isWellFormed()) return 'INVALID_FORMAT';
  if (field !== 'type') return 'INVALID_ENUM';
  return isBlank(input) ? 'MISSING_REQUIRED_FIELD' : 'UNSUPPORTED_TYPE';
}

function typeCode(field: string, input: unknown): RejectionCode {
  if (field === WHOLE_MESSAGE) return 'INVALID_FORMAT';
  if (isAbsent(input)) return 'MISSING_REQUIRED_FIELD';
  // JSON text such as 1e999 is a number that no double holds.
  return typeof input === 'number' && !Number.isFinite(input) ? 'INVALID_VALUE' : 'INVALID_FORMAT';
}

function codeOf(issue: Issue, field: string): RejectionCode {
  const own = issue.params?.code;
  if (isRejectionCode(own)) return own;
  if (issue.code === 'invalid_value') return enumerationCode(field, issue.input);
  return issue.code === 'invalid_type' ? typeCode(field, issue.input) : 'INVALID_VALUE';
}

function messageOf(code: RejectionCode, { code: kind, expected, values = [], message, input }: Issue): string {
  if (code === 'MISSING_REQUIRED_FIELD') return WRONG.missing;
  if (kind === 'invalid_value' && values.length > 0) return WRONG.option(values);
  if (kind !== 'invalid_type') return message;
  return WRONG.type(typeof input === 'number' && expected === 'number' ? 'finite number' : String(expected));
}

/** Maps zod issues to errors, each field and code once. A custom issue may carry its code as `params.code`. */
export function toRejectionErrors(issues: readonly Issue[]): RejectionError[] {
  const errors = issues.map((issue) => {
    const field = issue.path.length === 0 ? WHOLE_MESSAGE : issue.path.join('.');
    const code = codeOf(issue, field);
    return { field, code, message: `${field} ${messageOf(code, issue)}` };
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

const rule = (code: RejectionCode, error: string) => ({ params: { code }, error });

/** Unicode code points after JSON decoding, so 256 emoji are 256: contract, "Length of a text". */
export function hasCodePointsAtMost(text: string, max: number): boolean {
  if (text.length <= max) return true;
  if (text.length > 2 * max) return false;
  let count = 0;
  for (const _ of text) count += 1;
  return count <= max;
}

/** A rule of a text. When it is broken and `ends`, later rules are not checked. */
interface TextRule {
  keeps: (value: string) => boolean;
  code: RejectionCode;
  error: string;
  ends?: boolean;
}

/** Zod's `abort` would also skip the rules between fields. */
function keepAll(...rules: readonly TextRule[]) {
  return (value: string, context: z.RefinementCtx): void => {
    for (const { keeps, code, error, ends } of rules) {
      if (keeps(value)) continue;
      context.addIssue({ code: 'custom', message: error, params: { code } });
      if (ends) return;
    }
  };
}

const wellFormed: TextRule = {
  keeps: (value) => value.isWellFormed(),
  code: 'INVALID_FORMAT',
  error: WRONG.surrogate,
  ends: true,
};
const atMost = (max: number): TextRule => ({
  keeps: (value) => hasCodePointsAtMost(value, max),
  code: 'INVALID_VALUE',
  error: WRONG.length(max),
});
/** Blank counts as missing in a required field: contract, "Blank in a required field". */
const notBlank: TextRule = {
  keeps: (value) => !isBlank(value),
  code: 'MISSING_REQUIRED_FIELD',
  error: WRONG.missing,
  ends: true,
};

/** Half a surrogate pair counts as one and is stored as U+FFFD, because clients cut texts between UTF-16 units. */
const text = (max: number) =>
  z
    .string()
    .superRefine(keepAll(atMost(max)))
    .meta({ maxLength: max });
const requiredText = (max: number) =>
  z
    .string()
    .superRefine(keepAll(atMost(max), notBlank))
    .meta({ maxLength: max });

/** `null` in an optional field is absent: contract, "null". */
const name = () => text(ID_CODE_POINTS_MAX).nullish();
/** Two ids that differ only in half a surrogate pair would become one person. */
const personId = () =>
  z
    .string()
    .superRefine(keepAll(wellFormed, atMost(ID_CODE_POINTS_MAX)))
    .meta({ maxLength: ID_CODE_POINTS_MAX, description: 'Must be well-formed Unicode: no half of a surrogate pair.' })
    .nullish();
export const PERSON_IDS = ['anonymousId', 'userId', 'fromId', 'toId'] as const;
const identityType = () => z.enum(IDENTITY_TYPES).nullish();

type FreeForm = Record<string, unknown>;
const FREE_FORM_DESCRIPTION =
  'Any JSON object, at most 64 levels deep. An integer beyond 64 bits and a number beyond a double are stored as strings of the same characters, half a surrogate pair as U+FFFD.';
/** Any JSON object, unchanged. Zod would copy it key by key, half a second for 100,000 keys, and lose `__proto__`. */
const freeForm = () =>
  (z.unknown() as z.ZodType<FreeForm>)
    .refine(isJsonObject, rule('INVALID_FORMAT', WRONG.type('object')))
    .meta({ type: 'object', description: FREE_FORM_DESCRIPTION })
    .nullish();

const uuid: TextRule = { keeps: isUuidText, code: 'INVALID_FORMAT', error: WRONG.type('UUID') };
const timestamp: TextRule = {
  keeps: (value) => !Number.isNaN(parseTimestamp(value)),
  code: 'INVALID_FORMAT',
  error: 'is not an RFC 3339 timestamp',
};

const max = CONTEXT_CODE_POINTS_MAX;
/** Contract, "EventContext". */
export const eventContextSchema = z
  .object({
    library: requiredText(max.library),
    libraryVersion: requiredText(max.libraryVersion),
    userAgent: text(max.userAgent).nullish(),
    locale: text(max.locale).nullish(),
    timezone: text(max.timezone).nullish(),
    screen: text(max.screen).nullish(),
    screenDensity: z.number().nullish(),
    pageUrl: text(max.pageUrl).nullish(),
    pagePath: text(max.pagePath).nullish(),
    pageReferrer: text(max.pageReferrer).nullish(),
    pageTitle: text(max.pageTitle).nullish(),
    browserLanguage: text(max.browserLanguage).nullish(),
  })
  .meta({ id: 'EventContext' });

const messageShape = z.object({
  type: z.enum(MESSAGE_TYPES),
  messageId: z.string().superRefine(keepAll(notBlank, uuid)).meta({ format: 'uuid' }),
  eventTimestamp: z.string().superRefine(keepAll(notBlank, timestamp)).meta({ format: 'date-time' }),
  anonymousId: personId(),
  deviceId: name(),
  sessionId: name(),
  context: eventContextSchema.nullish(),
  eventName: name(),
  properties: freeForm(),
  userId: personId(),
  identityType: identityType(),
  traits: freeForm(),
  fromId: personId(),
  fromType: identityType(),
  toId: personId(),
  toType: identityType(),
  surface: z.enum(SURFACES).nullish(),
  consentLevel: z.enum(CONSENT_STATUSES).nullish(),
  test: z.boolean().nullish(),
});
type MessageShape = z.output<typeof messageShape>;

/** Strings that are required for one type only: contract, "Required per type". */
export const REQUIRED_BY_TYPE = [
  { type: 'track', field: 'eventName' },
  { type: 'identify', field: 'userId' },
  { type: 'alias', field: 'fromId' },
  { type: 'alias', field: 'toId' },
] as const;

const isMissing = (value: unknown): boolean => value == null || (typeof value === 'string' && isBlank(value));

/** Also called for messages with errors, so the values may have any type. */
function aliasesItself({ type, fromId, toId }: Partial<Record<keyof MessageShape, unknown>>): boolean {
  if (type !== 'alias' || typeof fromId !== 'string' || typeof toId !== 'string') return false;
  return !isBlank(fromId) && fromId.trim() === toId.trim();
}

/** Rules between fields are checked even when a field has an error. */
const whenObject = ({ value }: { value: unknown }): boolean => typeof value === 'object' && value !== null;

/** All rules of a message except the time window: contract, "Message" and "Rules of a message". */
export const messageSchema = REQUIRED_BY_TYPE.reduce(
  (schema, { type, field }) =>
    schema.refine((message) => message.type !== type || !isMissing(message[field]), {
      ...rule('MISSING_REQUIRED_FIELD', WRONG.missing),
      path: [field],
      when: whenObject,
    }),
  messageShape,
)
  .refine((message) => !aliasesItself(message), {
    ...rule('INVALID_VALUE', 'is the same as fromId'),
    path: ['toId'],
    when: whenObject,
  })
  .meta({ id: 'Message' });

type WithoutNull<T> = { [Name in keyof T]: Exclude<T[Name], null> };
export type EventContext = WithoutNull<z.output<typeof eventContextSchema>>;

/** A valid message. A blank optional id is undefined. */
export interface Message extends WithoutNull<Omit<MessageShape, 'context'>> {
  context?: EventContext;
  /** `eventTimestamp` in epoch milliseconds. */
  eventTime: number;
}

export type ParsedMessage = { ok: true; message: Message } | { ok: false; errors: RejectionError[] };

/** Blank ones count as absent: contract, "Blank optional id". */
const OPTIONAL_IDS = ['anonymousId', 'deviceId', 'sessionId', 'userId', 'fromId', 'toId'] as const;

function withoutNull<T extends object>(value: T): WithoutNull<T> {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field != null)) as WithoutNull<T>;
}

function toMessage({ context, ...fields }: MessageShape): Message {
  const message: Message = { ...withoutNull(fields), eventTime: parseTimestamp(fields.eventTimestamp) };
  for (const name of OPTIONAL_IDS) {
    if (isMissing(message[name])) delete message[name];
  }
  if (context != null) message.context = withoutNull(context);
  return message;
}

function windowErrors(value: unknown, window: TimeWindow): RejectionError[] {
  const stamp = typeof value === 'object' && value !== null && 'eventTimestamp' in value ? value.eventTimestamp : null;
  const eventTime = typeof stamp === 'string' ? parseTimestamp(stamp) : Number.NaN;
  if (Number.isNaN(eventTime) || (eventTime >= window.fromMs && eventTime <= window.toMs)) return [];
  const side = eventTime < window.fromMs ? 'too old' : 'too far in the future';
  return [{ field: 'eventTimestamp', code: 'INVALID_VALUE', message: `eventTimestamp is ${side}` }];
}

/**
 * Validates one message.
 * @returns the typed message, or all its errors, each field and code once
 */
export function parseMessage(value: unknown, window: TimeWindow): ParsedMessage {
  const parsed = messageSchema.safeParse(value, { reportInput: true });
  const late = windowErrors(value, window);
  if (!parsed.success) return { ok: false, errors: [...toRejectionErrors(parsed.error.issues), ...late] };
  if (late.length > 0) return { ok: false, errors: late };
  return { ok: true, message: toMessage(parsed.data) };
}
