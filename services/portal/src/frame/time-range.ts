/** The time ranges of Overview, Explore and Rejections. They share a parameter, so that links between them keep the range. */
import type { Markup } from '@playline/api-docs';
import { hrefWith } from '../href.ts';
import { segments } from './components.ts';
import type { Visit } from './page.ts';

const [HOUR_MS, DAY_MS] = [3_600_000, 86_400_000];
const RANGES = [
  { name: '1h', text: '1 h', ms: HOUR_MS },
  { name: '24h', text: '24 h', ms: DAY_MS },
  { name: '7d', text: '7 d', ms: 7 * DAY_MS },
  { name: '30d', text: '30 d', ms: 30 * DAY_MS },
  { name: '90d', text: '90 d', ms: 90 * DAY_MS },
] as const;
type TimeRange = (typeof RANGES)[number];

/** Returns the ranges that a page offers, with the steps of its charts. */
export const rangesWith = <S extends object>(
  steps: Readonly<Partial<Record<TimeRange['name'], S>>>,
): readonly (TimeRange & S)[] =>
  RANGES.flatMap((range) => (steps[range.name] === undefined ? [] : [{ ...range, ...steps[range.name]! }]));

/** Returns the range in the address; 24 hours by default. */
export function rangeOf<R extends TimeRange>(query: URLSearchParams, ranges: readonly R[]): R {
  const findRange = (name: string | null) => ranges.find((each) => each.name === name);
  return findRange(query.get('range')) ?? findRange('24h')!;
}

const DROPPED = { since: '', until: '', after: '', message: '', trace: '' };

/** @param current null if the page shows another range */
export function rangeSegments(visit: Visit, ranges: readonly TimeRange[], current: TimeRange | null): Markup {
  const toChoice = ({ name, text }: TimeRange) => ({
    text,
    href: hrefWith(visit, { ...DROPPED, range: name }),
    isCurrent: name === current?.name,
  });
  return segments('Time range', ranges.map(toChoice));
}
