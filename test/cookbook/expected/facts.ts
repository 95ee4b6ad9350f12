import type { Fact, World } from '../world.ts';

/** Query parameters of a recipe. */
export type RecipeParams = Readonly<Record<string, string>>;

/** A result row as parsed JSON. */
export type Row = Readonly<Record<string, unknown>>;

export const DAY_MS = 24 * 60 * 60 * 1000;

/** Returns midnight UTC in epoch milliseconds. */
export const toMs = (day = ''): number => Date.parse(`${day}T00:00:00Z`);

/** Formats a time as `2026-06-08` in UTC. */
export const toDay = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** Formats a time as `2026-06-08 01:02:03.004` in UTC. */
export const toTime = (ms: number): string => new Date(ms).toISOString().replace('T', ' ').replace('Z', '');

export const toMonth = (day: string): string => `${day.slice(0, 7)}-01`;

/** Returns the Monday of the week that contains a day. */
export function toMonday(day: string): string {
  const weekday = (new Date(toMs(day)).getUTCDay() + 6) % 7;
  return toDay(toMs(day) - weekday * DAY_MS);
}

export const daysBetween = (from: string, to: string): number => (toMs(to) - toMs(from)) / DAY_MS;

/** Returns all events except test events. */
export const eventsOf = ({ facts }: World): Fact[] => facts.filter(({ message }) => message.test !== true);

/** Returns events from `since` (inclusive) to `until` (exclusive), except test events. `days` extends both bounds. */
export function occurredIn(world: World, { since, until }: RecipeParams, days = 0): Fact[] {
  const [from, to] = [toMs(since) - days * DAY_MS, toMs(until) + days * DAY_MS];
  return eventsOf(world).filter(({ message }) => message.eventTime >= from && message.eventTime < to);
}

/** Returns events received from `since` (inclusive) to `until` (exclusive), except test events. */
export function receivedIn(world: World, { since, until }: RecipeParams): Fact[] {
  const [from, to] = [toMs(since), toMs(until)];
  return eventsOf(world).filter(({ receivedAt }) => receivedAt >= from && receivedAt < to);
}

/** Counts the people who sent the events. Events without an owner do not count. */
export function countPeople(facts: readonly Fact[]): number {
  return new Set(facts.flatMap(({ person }) => person ?? [])).size;
}

/** Groups items and sorts the groups by key, element by element: strings by code unit, numbers by value. */
export function groupSorted<T, K extends readonly (string | number)[]>(
  items: readonly T[],
  keyOf: (item: T) => K,
): [K, T[]][] {
  const groups = Map.groupBy(items, (item) => JSON.stringify(keyOf(item)));
  return [...groups]
    .map(([key, group]): [K, T[]] => [JSON.parse(key) as K, group])
    .sort(([a], [b]) => compareLists(a, b));
}

/** Compares lists element by element. @returns a negative number, 0, or a positive number */
export function compareLists(a: readonly (string | number)[], b: readonly (string | number)[]): number {
  for (const [index, left] of a.entries()) {
    const right = b[index];
    if (right === undefined || left > right) return 1;
    if (left < right) return -1;
  }
  return a.length - b.length;
}

/** Returns the quantile of the values at `level`, from 0 to 1. */
export function quantile(values: readonly number[], level: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(level * values.length)]!;
}
