import type { EventName } from './game.ts';
import { peerRows } from './peer.ts';

/** The rows that a query is about. */
export interface Filter {
  /** From the first moment to just before the second, as text for ClickHouse; absent: all time. */
  readonly span?: Span;
  readonly names?: readonly EventName[];
}

export interface Span {
  readonly since: string;
  readonly until: string;
}

/** A table or view, so that one query can be sent to several. Columns have the names of `events`. */
export interface Source {
  /** Text after FROM. */
  rows(filter: Filter): string;
  /** Text after FROM for a query that needs `person`. */
  peopleRows(filter: Filter): string;
  /** The column with the person. */
  readonly person: string;
}

const timeOf = (text: string) => `toDateTime64('${text}', 3, 'UTC')`;
const listOf = (names: readonly string[]) => names.map((name) => `'${name}'`).join(', ');

/** @returns conditions, joined by AND; empty when there are none */
function conditionsOf({ span, names }: Filter, columns: { time: string; name: string }): string[] {
  const times = span && [`${columns.time} >= ${timeOf(span.since)}`, `${columns.time} < ${timeOf(span.until)}`];
  const isNamed = names && `${columns.name} ${names.length === 1 ? `= ${listOf(names)}` : `IN (${listOf(names)})`}`;
  return [...(times ?? []), ...(isNamed === undefined ? [] : [isNamed])];
}

/** Creates a source from one of our tables or views. @param name `events`, or a view with its columns */
export function createSource(name: string, environmentId: string, person: string): Source {
  const rows = (filter: Filter) =>
    `${name} WHERE ${[`environment_id = '${environmentId}'`, ...conditionsOf(filter, { time: 'event_time', name: 'event_name' })].join(' AND ')}`;
  return { rows, peopleRows: rows, person };
}

const peerWhere = ({ span, names }: Filter) =>
  conditionsOf(
    {
      ...(span && { span }),
      ...(names && { names: names.map((name) => (name === '' ? ('$pageview' as EventName) : name)) }),
    },
    { time: 'event.timestamp', name: 'event.event' },
  ).join(' AND ');

/** The peer's tables. */
export const PEER: Source = {
  rows: (filter) => peerRows({ where: peerWhere(filter), people: false }),
  peopleRows: (filter) => peerRows({ where: peerWhere(filter), people: true }),
  person: 'person',
};
