import { DUPLICATE_ID, TOO_LARGE, tooDeepError } from './batch.ts';
import { CONTEXT_CODE_POINTS_MAX, EVENT_AGE_MAX_MS, EVENT_AHEAD_MAX_MS, MESSAGE_TYPES } from './limits.ts';
import { eventContextSchema, messageSchema, parseMessage, REQUIRED_BY_TYPE, type RejectionError } from './message.ts';

const VALID = { messageId: '0192f1c0-7b3a-7c4d-8e5f-000000000001', eventTimestamp: '2026-01-01T00:00:00Z' };
const VALID_CONTEXT = { library: 'l', libraryVersion: '1' };
const ANY_TIME = { fromMs: Number.NEGATIVE_INFINITY, toMs: Number.POSITIVE_INFINITY };
const LONG = 'x'.repeat(CONTEXT_CODE_POINTS_MAX.pageUrl + 1);
/** Values that violate each kind of rule at least once. */
const SAMPLES = [undefined, '', 'x', LONG, '\ud800', true, 1, [], {}];

const HOUR_MS = 3_600_000;
const TIME_WINDOW: RejectionError = {
  field: 'eventTimestamp',
  code: 'INVALID_VALUE',
  message: `eventTimestamp is too far in the past or in the future; unless this installation sets other limits, ${EVENT_AGE_MAX_MS / (24 * HOUR_MS)} days and ${EVENT_AHEAD_MAX_MS / HOUR_MS} hours are accepted`,
};

function errorsOf(value: unknown): readonly RejectionError[] {
  const parsed = parseMessage(value, ANY_TIME);
  return parsed.ok ? [] : parsed.errors;
}

const inContext = (name: string, value: unknown) =>
  errorsOf({ type: 'page', ...VALID, context: { ...VALID_CONTEXT, [name]: value } });

/** Validates samples in every field, so that the sentences cannot contradict the contract. */
const collectErrors = (): RejectionError[] => [
  ...[DUPLICATE_ID, TOO_LARGE, TIME_WINDOW, tooDeepError('properties'), tooDeepError('traits')],
  ...SAMPLES.flatMap((sample) => [
    ...errorsOf(sample).filter(({ field }) => field === 'message'),
    ...Object.keys(messageSchema.shape).flatMap((name) =>
      errorsOf({ type: 'page', ...VALID, [name]: sample }).filter(({ field }) => field === name),
    ),
    ...Object.keys(eventContextSchema.shape).flatMap((name) => inContext(name, sample)),
  ]),
  ...MESSAGE_TYPES.flatMap((type) => errorsOf({ type, ...VALID })),
  ...inContext('screenDensity', Number.POSITIVE_INFINITY),
  ...errorsOf({ type: 'alias', ...VALID, fromId: 'a', toId: 'a' }),
];

let sentences: ReadonlyMap<string, string> | null = null;

function createSentences(): ReadonlyMap<string, string> {
  const predicates = new Map<string, Set<string>>();
  for (const { field, code, message } of collectErrors()) {
    const key = `${field} ${code}`;
    predicates.set(key, (predicates.get(key) ?? new Set()).add(message.slice(field.length + 1)));
  }
  return new Map(
    [...predicates].map(([key, texts]) => {
      const [field = '', code] = key.split(' ');
      const required = code === 'MISSING_REQUIRED_FIELD' && REQUIRED_BY_TYPE.find((each) => each.field === field);
      const type = required ? ` for ${required.type} messages` : '';
      return [key, `${field} ${[...texts].join(' or ')}${type}`];
    }),
  );
}

/** Names the rules that a field with this code can violate, with their bounds; null for an unknown code or field. */
export function describeRejection({ field, code }: { readonly field: string; readonly code: string }): string | null {
  sentences ??= createSentences();
  return sentences.get(`${field} ${code}`) ?? null;
}
