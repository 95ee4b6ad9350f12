import type { EventName } from './game.ts';
import { peerRows } from './peer.ts';

interface Filter {
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
  rows(filter: Filter): string;
  peopleRows(filter: Filter): string;
  readonly person: string;
}

const timeOf = (text: string) => `toDateTime64('${text}', 3, 'UTC')`;
const listOf = (names: readonly string[]) => names.map((name) => `'${name}'`).join(', ');

function conditionsOf({ span, names }: Filter, columns: { time: string; name: string }): string[] {
  const times = span && [`${columns.time} >= ${timeOf(span.since)}`, `${columns.time} < ${timeOf(span.until)}`];
  const isNamed = names && `${columns.name} ${names.length === 1 ? `= ${listOf(names)}` : `IN (${listOf(names)})`}`;
  return [...(times ?? []), ...(isNamed === undefined ? [] : [isNamed])];
}

/** @param name `events`, or a view with its columns */
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

export const PEER: Source = {
  rows: (filter) => peerRows({ where: peerWhere(filter), people: false }),
  peopleRows: (filter) => peerRows({ where: peerWhere(filter), people: true }),
  person: 'person',
};
