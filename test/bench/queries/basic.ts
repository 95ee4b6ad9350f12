import { atMost, type Bar } from '../figure.ts';
import type { Scene } from './scene.ts';
import type { Source, Span } from './sources.ts';

/** A query of an analyst for each source, written as an analyst who knows the tables would. */
export interface AnalystQuery {
  readonly name: string;
  readonly isOfDay?: true;
  readonly raw: string;
  /** With copies folded; absent where no one would query it that way. */
  readonly exact?: string;
  readonly identified: string;
  readonly peer: string;
  /** The peer's result must equal that of `identified`, because copies do not change it. */
  readonly agrees?: true;
  readonly bars?: readonly Bar[];
  readonly readRowsBar?: Bar;
}

type Write = (source: Source) => string;

const ofAll = ({ raw, exact, analysis, peer }: Scene, write: Write) => ({
  raw: write(raw),
  exact: write(exact),
  identified: write(analysis),
  peer: write(peer),
});

/** The most frequent queries of analysts, from a day's count to one message. */
export function basicQueries(scene: Scene): AnalystQuery[] {
  const { day, month } = scene.spans;
  return [
    {
      name: 'count of a day',
      isOfDay: true,
      ...ofAll(scene, (source) => `SELECT count() FROM ${source.rows({ span: day })}`),
    },
    {
      name: 'people of a day',
      isOfDay: true,
      agrees: true,
      ...ofAll(scene, (source) => `SELECT uniqExact(${source.person}) FROM ${source.peopleRows({ span: day })}`),
    },
    { name: 'one name of a day, by a property', isOfDay: true, ...ofAll(scene, (source) => byProperty(source, day)) },
    {
      name: 'active people a day, 30 days',
      ...ofAll(
        scene,
        (source) =>
          `SELECT toDate(event_time) AS day, uniqExact(${source.person}) FROM ${source.peopleRows({ span: month })} GROUP BY day ORDER BY day`,
      ),
      identified: `SELECT day, uniqExact(person_key) FROM ${personDays(scene, month)} GROUP BY day ORDER BY day`,
      agrees: true,
      bars: [atMost('value', 1_500, 300)],
    },
    { name: 'count of all', ...ofAll(scene, (source) => `SELECT count() FROM ${source.rows({})}`) },
    {
      name: 'timeline of one person',
      bars: [atMost('value', 100, 30)],
      ...timeline(scene),
      readRowsBar: atMost('value', 500_000),
    },
    { name: 'timeline of one person, 7 days', ...timeline(scene, scene.spans.week) },
    { name: 'funnel of three steps, a day', isOfDay: true, ...ofAll(scene, (source) => funnel(source, day)) },
    { name: 'one message by its id', bars: [atMost('value', 50, 15)], ...oneMessage(scene) },
  ];
}

export const personDays = ({ environmentId }: Scene, { since, until }: Span): string =>
  `person_days WHERE environment_id = '${environmentId}' AND day >= '${since}' AND day < '${until}'`;

const byProperty = (source: Source, span: Span) =>
  `SELECT JSONExtractString(properties, 'map') AS map, count() AS events, uniqExact(${source.person}) AS people
   FROM ${source.peopleRows({ span, names: ['level_finished'] })} GROUP BY map ORDER BY map`;

function funnel(source: Source, span: Span): string {
  const steps = ['level_started', 'level_finished', 'item_bought'] as const;
  const conditions = steps.map((step) => `event_name = '${step}'`).join(', ');
  return `SELECT step, count() FROM (
    SELECT ${source.person} AS who, windowFunnel(3600)(toDateTime(event_time), ${conditions}) AS step
    FROM ${source.peopleRows({ span, names: steps })} GROUP BY who) GROUP BY step ORDER BY step`;
}

function timeline(scene: Scene, span?: Span): Pick<AnalystQuery, 'raw' | 'exact' | 'identified' | 'peer'> {
  const { environmentId, who } = scene;
  const columns = 'event_time, event_name, session_id, page_path, properties';
  const filter = span === undefined ? {} : { span };
  const ofIdentity = ({ rows }: Source) =>
    `SELECT ${columns} FROM ${rows(filter)} AND identity_key = unhex('${who.identity}') ORDER BY event_time`;
  const times = span === undefined ? '' : `WHERE event_time >= '${span.since}' AND event_time < '${span.until}'`;
  const ids = who.ids.map((id) => `'${id}'`).join(', ');
  return {
    raw: ofIdentity(scene.raw),
    exact: ofIdentity(scene.exact),
    identified: `SELECT ${columns} FROM person_timeline(environment = '${environmentId}', person = '${who.person}') ${times} ORDER BY event_time`,
    // The peer needs another query first, which finds the ids of the person.
    peer: `SELECT ${columns} FROM ${scene.peer.rows(filter)} WHERE distinct_id IN (${ids}) ORDER BY event_time`,
  };
}

function oneMessage({ environmentId, who, peer }: Scene): Pick<AnalystQuery, 'raw' | 'exact' | 'identified' | 'peer'> {
  const of = (name: string) =>
    `SELECT * FROM ${name} WHERE environment_id = '${environmentId}' AND message_id = '${who.messageId}'`;
  return {
    raw: of('events'),
    exact: of('events_exact'),
    identified: of('events_identified'),
    peer: `SELECT * FROM ${peer.rows({})} WHERE message_id = '${who.messageId}'`,
  };
}
