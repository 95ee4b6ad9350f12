import type { Fact, World } from '../world.ts';

/** The parameters of a recipe. */
export type RecipeParams = Readonly<Record<string, string>>;

/** A row of an answer as JSON. */
export type Row = Readonly<Record<string, unknown>>;

const DAY_MS = 24 * 60 * 60 * 1000;

/** Midnight in UTC. */
export const toMs = (day = ''): number => Date.parse(`${day}T00:00:00Z`);

/** `2026-06-08`, UTC. */
export const toDay = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** `2026-06-08 01:02:03.004`, UTC. */
export const toTime = (ms: number): string => new Date(ms).toISOString().replace('T', ' ').replace('Z', '');

export const toMonth = (day: string): string => `${day.slice(0, 7)}-01`;

/** The Monday of the week of a day. */
export function toMonday(day: string): string {
  const weekday = (new Date(toMs(day)).getUTCDay() + 6) % 7;
  return toDay(toMs(day) - weekday * DAY_MS);
}

export const daysBetween = (from: string, to: string): number => (toMs(to) - toMs(from)) / DAY_MS;

/** All events that are not tests. */
export const eventsOf = ({ facts }: World): Fact[] => facts.filter(({ message }) => message.test !== true);

/** The events from the first day to before the last, tests excluded. `days` extends the span on both sides. */
export function occurredIn(world: World, { since, until }: RecipeParams, days = 0): Fact[] {
  const [from, to] = [toMs(since) - days * DAY_MS, toMs(until) + days * DAY_MS];
  return eventsOf(world).filter(({ message }) => message.eventTime >= from && message.eventTime < to);
}

/** The events that were received within the span. */
export function receivedIn(world: World, { since, until }: RecipeParams): Fact[] {
  const [from, to] = [toMs(since), toMs(until)];
  return eventsOf(world).filter(({ receivedAt }) => receivedAt >= from && receivedAt < to);
}

/** Number of people who sent the events. Events without an owner do not count. */
export function peopleOf(facts: readonly Fact[]): number {
  return new Set(facts.flatMap(({ person }) => person ?? [])).size;
}

/** Groups, sorted by their keys. Parts of keys are compared in turn: texts by code unit, numbers by value. */
export function groupSorted<T, K extends readonly (string | number)[]>(
  items: readonly T[],
  keyOf: (item: T) => K,
): [K, T[]][] {
  const groups = Map.groupBy(items, (item) => JSON.stringify(keyOf(item)));
  return [...groups]
    .map(([key, group]): [K, T[]] => [JSON.parse(key) as K, group])
    .sort(([a], [b]) => compareLists(a, b));
}

/** -1, 0 or 1. */
export function compareLists(a: readonly (string | number)[], b: readonly (string | number)[]): number {
  for (const [index, left] of a.entries()) {
    const right = b[index];
    if (right === undefined || left > right) return 1;
    if (left < right) return -1;
  }
  return a.length - b.length;
}

/** The element at a given share of the sorted values. */
export function quantile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(share * values.length)]!;
}
