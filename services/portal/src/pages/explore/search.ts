/** Reads a search for stored messages from the address of the Explore page. */
import { PROPERTY_OPERATORS, type PropertyFilter } from '@playline/events';
import type { Visit } from '../../frame/page.ts';
import { INVALID_RANGE, INVALID_TIME, parseTime } from '../../frame/parse-time.ts';
import { scopeOf } from '../../frame/scope.ts';
import { rangeOf, rangesWith } from '../../frame/time-range.ts';
import { parseFilter } from '../../live/index.ts';
import type { MessageSearch } from '../../reads/index.ts';
import { shouldMaskIds } from '../live/events.ts';

const [MINUTE_MS, HOUR_MS, DAY_MS] = [60_000, 3_600_000, 86_400_000];

/** `stepMs` is the length of the steps of the chart. */
export const EXPLORE_RANGES = rangesWith({
  '1h': { stepMs: MINUTE_MS },
  '24h': { stepMs: 30 * MINUTE_MS },
  '7d': { stepMs: 3 * HOUR_MS },
  '30d': { stepMs: 12 * HOUR_MS },
});
const STEPS_MS = [1, 10, 60, 300, 1_800, 10_800, 43_200, 86_400, 604_800].map((seconds) => 1000 * seconds);
const STEPS_MAX = 60;

const FIELDS = 'event type surface traffic property operator value since until range identity after message'.split(' ');
export type ExploreFields = Readonly<Record<string, string>>;

export const readFields = (query: URLSearchParams): ExploreFields =>
  Object.fromEntries(FIELDS.map((name) => [name, (query.get(name) ?? '').trim()]));

export type ExploreSearch = MessageSearch & { readonly stepMs: number; readonly test: boolean };

/** The properties that the viewer may read and filter by. */
export const readablePropertiesOf = (visit: Visit): 'all' | readonly string[] =>
  shouldMaskIds(visit) ? scopeOf(visit).project.safeProperties : 'all';

/** The id is empty if the search timed out between two messages. */
const POSITION = /^(\d{1,14})\.((?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})?)$/;

/** @returns a message for the user if the search is invalid @throws PublicError if a choice is invalid or the role may not filter by person */
export function toSearch(visit: Visit, fields: ExploreFields, nowMs: number): ExploreSearch | string {
  const { event: name = '', type = '', surface = '', traffic = '', identity = '', after = '' } = fields;
  parseFilter(new URLSearchParams({ type, surface, identity }), !shouldMaskIds(visit));
  const property = toPropertyFilter(visit, fields);
  if (typeof property === 'string') return property;
  const range = toRange(visit, fields, nowMs);
  if (typeof range === 'string') return range;
  const [, ms, messageId] = POSITION.exec(after) ?? [];
  return {
    ...range,
    environmentId: scopeOf(visit).environment.id,
    idAccess: shouldMaskIds(visit) ? 'masked ids' : 'raw ids',
    name,
    type,
    surface,
    test: traffic === 'test',
    property,
    identityIds: identity === '' ? undefined : identity.split('.'),
    after: messageId === undefined ? undefined : { happenedMs: Number(ms), messageId },
  };
}

function toPropertyFilter(visit: Visit, fields: ExploreFields): PropertyFilter | null | string {
  const { property: name = '', value = '' } = fields;
  if (name === '') return null;
  const readable = readablePropertiesOf(visit);
  if (readable !== 'all' && !readable.includes(name))
    return 'Your role can filter only by properties that the project declares safe.';
  const operator = PROPERTY_OPERATORS.find((each) => each === (fields.operator || 'eq'));
  if (operator === undefined) return `Invalid operator: expected one of ${PROPERTY_OPERATORS.join(', ')}.`;
  const isNumeric = value !== '' && Number.isFinite(Number(value));
  if ((operator === 'gt' || operator === 'lt') && !isNumeric) return 'Enter a number to compare with > or <.';
  return { name, operator, value };
}

/** Relative ranges have an additional step, so that each bar of the chart covers a whole step. */
function toRange({ query }: Visit, { since = '', until = '' }: ExploreFields, nowMs: number) {
  const [sinceTime, untilTime] = [parseTime(since), parseTime(until)];
  if (sinceTime === undefined || untilTime === undefined) return INVALID_TIME;
  if (sinceTime === null && untilTime === null) {
    const { ms, stepMs } = rangeOf(query, EXPLORE_RANGES);
    const untilMs = (Math.floor(nowMs / stepMs) + 1) * stepMs;
    return { sinceMs: untilMs - ms - stepMs, untilMs, stepMs };
  }
  const untilMs = untilTime ?? nowMs + DAY_MS;
  const sinceMs = sinceTime ?? untilMs - DAY_MS;
  if (sinceMs >= untilMs) return INVALID_RANGE;
  return { sinceMs, untilMs, stepMs: STEPS_MS.find((each) => (untilMs - sinceMs) / each <= STEPS_MAX) ?? 30 * DAY_MS };
}
