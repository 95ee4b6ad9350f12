import type { EventName } from './game.ts';
import { peerRows } from './peer.ts';

/** Which rows a question is about. */
export interface Filter {
  /** From the first moment to just before the second, as text of the engine; all time without. */
  readonly span?: Span;
  readonly names?: readonly EventName[];
}

export interface Span {
  readonly since: string;
  readonly until: string;
}

/** Where rows stand, so that one question can be asked of several: columns have the names of `events`. */
export interface Source {
  /** Text after FROM. */
  rows(filter: Filter): string;
  /** The same for a question that needs `person`. */
  peopleRows(filter: Filter): string;
  /** The column that says who. */
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

/** A table or a view of ours. @param name `events`, or a view with its columns */
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
