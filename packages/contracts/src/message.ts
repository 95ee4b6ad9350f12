import { z } from 'zod';
import { CONTEXT_FIELD_TEXTS, describeFields, MESSAGE_FIELD_TEXTS } from './field-texts.ts';
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
import { isJsonObject, isUuidText, parseTimestamp, type TimeWindow, toDurationText } from './texts.ts';

/** Contract, "RejectionError". More codes may be added, so the schema accepts any string. */
export const rejectionErrorSchema = z
  .object({
    field: z.string().meta({
      description: 'Name of the invalid field. Nested fields are named with a dot; `message` is the whole message',
    }),
    code: z.string().meta({ description: `More codes may be added. Current codes: ${REJECTION_CODES.join(', ')}` }),
    message: z.string().meta({
      description: 'Names the field and the rule, such as the bound that the value breaks; the wording may change',
    }),
  })
  .meta({ id: 'RejectionError' });

/** Contract, "MessageRejection". */
export const messageRejectionSchema = z
  .object({
    messageId: z.string().meta({ description: 'The id from the message, unchanged; empty if the message has no id' }),
    errors: z.array(rejectionErrorSchema).min(1),
  })
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

/** The `field` of errors that apply to the whole message. */
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
    message: z.string().meta({ description: 'What is wrong; the wording may change' }),
    link: z.string().meta({ description: 'Page that explains how to resolve the error' }),
    trace_id: z.string().meta({ description: 'Identifies the request; also in the header x-trace-id' }),
    code: z.enum(ENVELOPE_CODES).meta({ description: 'Stable; each code has a page in the documentation' }),
    details: z
      .record(z.string(), z.unknown())
      .nullable()
      .meta({ description: 'Names the invalid field, header or parameter, if there is one' }),
  })
  .meta({ id: 'ErrorEnvelope' });

/** The fields of a zod issue that are used here. `input` requires parsing with `reportInput: true`. */
type Issue = Pick<z.core.$ZodIssue, 'code' | 'path' | 'message' | 'input'> & {
  params?: Record<string, unknown> | undefined;
  expected?: string;
  values?: readonly unknown[];
};

/** A validation message consists of the path of a value and one of these predicates. */
const PREDICATES = {
  missing: 'is required',
  type: (name: string) => `is not ${/^[aeiou]/.test(name) ? 'an' : 'a'} ${name}`,
  option: (values: readonly unknown[]) => `is not one of ${values.join(', ')}`,
  surrogate: 'contains a lone surrogate',
  length: (max: number) => `is longer than ${max} characters`,
} as const;

/** Returns the validation message for a required string, without its path; null if the string is valid. */
export function findTextError(value: unknown, codePointsMax: number): string | null {
  if (isMissing(value)) return PREDICATES.missing;
  if (typeof value !== 'string') return PREDICATES.type('string');
  if (!value.isWellFormed()) return PREDICATES.surrogate;
  return hasCodePointsAtMost(value, codePointsMax) ? null : PREDICATES.length(codePointsMax);
}

/** Returns the validation message for a value that is not one of `values`, without its path. */
export const toOptionError = PREDICATES.option;

/** Returns true for '' and for strings of only white space. */
export function isBlank(text: string): boolean {
  return text.trim() === '';
}

const isAbsent = (value: unknown): boolean => value === undefined || value === null;

function isRejectionCode(value: unknown): value is RejectionCode {
  return REJECTION_CODES.some((code) => code === value);
}

/** `type` has a separate code, and counts as missing if it is blank. */
function enumerationCode(field: string, input: unknown): RejectionCode {
  if (isAbsent(input)) return 'MISSING_REQUIRED_FIELD';
  if (typeof input !== 'string' || !input.isWellFormed()) return 'INVALID_FORMAT';
  if (field !== 'type') return 'INVALID_ENUM';
  return isBlank(input) ? 'MISSING_REQUIRED_FIELD' : 'UNSUPPORTED_TYPE';
}

function typeCode(field: string, input: unknown): RejectionCode {
  if (field === WHOLE_MESSAGE) return 'INVALID_FORMAT';
  if (isAbsent(input)) return 'MISSING_REQUIRED_FIELD';
  // JSON.parse returns Infinity for a number such as 1e999.
  return typeof input === 'number' && !Number.isFinite(input) ? 'INVALID_VALUE' : 'INVALID_FORMAT';
}

function toCode(issue: Issue, field: string): RejectionCode {
  const custom = issue.params?.code;
  if (isRejectionCode(custom)) return custom;
  if (issue.code === 'invalid_value') return enumerationCode(field, issue.input);
  return issue.code === 'invalid_type' ? typeCode(field, issue.input) : 'INVALID_VALUE';
}

function formatError(code: RejectionCode, { code: issueCode, expected, values = [], message, input }: Issue): string {
  if (code === 'MISSING_REQUIRED_FIELD') return PREDICATES.missing;
  if (issueCode === 'invalid_value' && values.length > 0) return PREDICATES.option(values);
  if (issueCode !== 'invalid_type') return message;
  return PREDICATES.type(typeof input === 'number' && expected === 'number' ? 'finite number' : String(expected));
}

/** Converts zod issues to errors without duplicates. A custom issue may set its code in `params.code`. */
export function toRejectionErrors(issues: readonly Issue[]): RejectionError[] {
  const errors = issues.map((issue) => {
    const field = issue.path.length === 0 ? WHOLE_MESSAGE : issue.path.join('.');
    const code = toCode(issue, field);
    return { field, code, message: `${field} ${formatError(code, issue)}` };
  });
  return distinctErrors(errors);
}

/** Returns the first error for each field and code. */
export function distinctErrors(errors: readonly RejectionError[]): RejectionError[] {
  const seen = new Map<string, RejectionError>();
  for (const error of errors) {
    const id = `${error.field} ${error.code}`;
    if (!seen.has(id)) seen.set(id, error);
  }
  return [...seen.values()];
}

const rule = (code: RejectionCode, error: string) => ({ params: { code }, error });

/** Counts Unicode code points, so an emoji counts once: contract, "String length". */
export function hasCodePointsAtMost(text: string, max: number): boolean {
  if (text.length <= max) return true;
  if (text.length > 2 * max) return false;
  let count = 0;
  for (const _ of text) count += 1;
  return count <= max;
}

/** A rule for a string. If a rule with `isFinal` is violated, the remaining rules are not checked. */
interface TextRule {
  isValid: (value: string) => boolean;
  code: RejectionCode;
  error: string;
  isFinal?: boolean;
}

/** Zod's `abort` is not used because it would also skip the rules that compare fields. */
function checkAll(...rules: readonly TextRule[]) {
  return (value: string, context: z.RefinementCtx): void => {
    for (const { isValid, code, error, isFinal } of rules) {
      if (isValid(value)) continue;
      context.addIssue({ code: 'custom', message: error, params: { code } });
      if (isFinal) return;
    }
  };
}

const wellFormed: TextRule = {
  isValid: (value) => value.isWellFormed(),
  code: 'INVALID_FORMAT',
  error: PREDICATES.surrogate,
  isFinal: true,
};
const atMost = (max: number): TextRule => ({
  isValid: (value) => hasCodePointsAtMost(value, max),
  code: 'INVALID_VALUE',
  error: PREDICATES.length(max),
});
/** Contract, "Blank in a required field". */
const notBlank: TextRule = {
  isValid: (value) => !isBlank(value),
  code: 'MISSING_REQUIRED_FIELD',
  error: PREDICATES.missing,
  isFinal: true,
};

/** Accepts a lone surrogate, which counts as one character, because clients may cut a surrogate pair in half. */
const text = (max: number) =>
  z
    .string()
    .superRefine(checkAll(atMost(max)))
    .meta({ maxLength: max });
const requiredText = (max: number) =>
  z
    .string()
    .superRefine(checkAll(atMost(max), notBlank))
    .meta({ maxLength: max });

/** Contract, "null": an optional field that is null counts as absent. */
const name = () => text(ID_CODE_POINTS_MAX).nullish();
/** Rejects a lone surrogate: the ids of two people could become equal if surrogates were stored as U+FFFD. */
const personId = () =>
  z
    .string()
    .superRefine(checkAll(wellFormed, atMost(ID_CODE_POINTS_MAX)))
    .meta({ maxLength: ID_CODE_POINTS_MAX })
    .nullish();
export const PERSON_IDS = ['anonymousId', 'userId', 'fromId', 'toId'] as const;
const identityType = () => z.enum(IDENTITY_TYPES).nullish();

type FreeForm = Record<string, unknown>;
/** Returns any JSON object unchanged. A zod object would take half a second for 100,000 keys and lose `__proto__`. */
const freeForm = () =>
  (z.unknown() as z.ZodType<FreeForm>)
    .refine(isJsonObject, rule('INVALID_FORMAT', PREDICATES.type('object')))
    .meta({ type: 'object' })
    .nullish();

const uuid: TextRule = { isValid: isUuidText, code: 'INVALID_FORMAT', error: PREDICATES.type('UUID') };
const timestamp: TextRule = {
  isValid: (value) => !Number.isNaN(parseTimestamp(value)),
  code: 'INVALID_FORMAT',
  error: 'is not an RFC 3339 timestamp',
};

const max = CONTEXT_CODE_POINTS_MAX;
/** Contract, "EventContext". */
export const eventContextSchema = z
  .object(
    describeFields(CONTEXT_FIELD_TEXTS, {
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
    }),
  )
  .meta({ id: 'EventContext' });

const messageShape = z.object(
  describeFields(MESSAGE_FIELD_TEXTS, {
    type: z.enum(MESSAGE_TYPES),
    messageId: z.string().superRefine(checkAll(notBlank, uuid)).meta({ format: 'uuid' }),
    eventTimestamp: z.string().superRefine(checkAll(notBlank, timestamp)).meta({ format: 'date-time' }),
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
  }),
);
type MessageShape = z.output<typeof messageShape>;

/** Strings that only some message types require: contract, "Required per type". */
export const REQUIRED_BY_TYPE = [
  { type: 'track', field: 'eventName' },
  { type: 'identify', field: 'userId' },
  { type: 'alias', field: 'fromId' },
  { type: 'alias', field: 'toId' },
] as const;

const isMissing = (value: unknown): boolean => value == null || (typeof value === 'string' && isBlank(value));

/** Also called for invalid messages, so the values may have any type. */
function isSelfAlias({ type, fromId, toId }: Partial<Record<keyof MessageShape, unknown>>): boolean {
  if (type !== 'alias' || typeof fromId !== 'string' || typeof toId !== 'string') return false;
  return !isBlank(fromId) && fromId.trim() === toId.trim();
}

/** Checks rules that compare fields even if one of the fields is invalid. */
const whenObject = ({ value }: { value: unknown }): boolean => typeof value === 'object' && value !== null;

/** All rules for a message except the time window: contract, "Message" and "Rules of a message". */
export const messageSchema = REQUIRED_BY_TYPE.reduce(
  (schema, { type, field }) =>
    schema.refine((message) => message.type !== type || !isMissing(message[field]), {
      ...rule('MISSING_REQUIRED_FIELD', PREDICATES.missing),
      path: [field],
      when: whenObject,
    }),
  messageShape,
)
  .refine((message) => !isSelfAlias(message), {
    ...rule('INVALID_VALUE', 'is the same as fromId'),
    path: ['toId'],
    when: whenObject,
  })
  .meta({ id: 'Message' });

type WithoutNull<T> = { [Name in keyof T]: Exclude<T[Name], null> };
export type EventContext = WithoutNull<z.output<typeof eventContextSchema>>;

/** A valid message. Blank optional ids are undefined. */
export interface Message extends WithoutNull<Omit<MessageShape, 'context'>> {
  context?: EventContext;
  /** `eventTimestamp` in epoch milliseconds. */
  eventTime: number;
}

export type ParsedMessage = { ok: true; message: Message } | { ok: false; errors: RejectionError[] };

/** These ids count as absent if they are blank: contract, "Blank optional id". */
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

/** Returns the error for a time outside the window, and null for a time inside the window and for NaN. */
export function findTimeError(eventTime: number, { fromMs, toMs, nowMs }: TimeWindow): RejectionError | null {
  if (Number.isNaN(eventTime) || (eventTime >= fromMs && eventTime <= toMs)) return null;
  const isOld = eventTime < fromMs;
  const general = isOld ? 'too old' : 'too far in the future';
  const exact = (now: number) =>
    isOld ? `more than ${toDurationText(now - fromMs)} old` : `more than ${toDurationText(toMs - now)} in the future`;
  const reason = nowMs === undefined ? general : exact(nowMs);
  return { field: 'eventTimestamp', code: 'INVALID_VALUE', message: `eventTimestamp is ${reason}` };
}

function checkTimeWindow(value: unknown, window: TimeWindow): RejectionError[] {
  const text = typeof value === 'object' && value !== null && 'eventTimestamp' in value ? value.eventTimestamp : null;
  const error = findTimeError(typeof text === 'string' ? parseTimestamp(text) : Number.NaN, window);
  return error === null ? [] : [error];
}

/**
 * Validates a message.
 * @returns the typed message, or all errors without duplicates
 */
export function parseMessage(value: unknown, window: TimeWindow): ParsedMessage {
  const parsed = messageSchema.safeParse(value, { reportInput: true });
  const timeErrors = checkTimeWindow(value, window);
  if (!parsed.success) return { ok: false, errors: [...toRejectionErrors(parsed.error.issues), ...timeErrors] };
  if (timeErrors.length > 0) return { ok: false, errors: timeErrors };
  return { ok: true, message: toMessage(parsed.data) };
}
