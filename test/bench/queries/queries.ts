import type { Engine } from '../clickhouse.ts';
import { atMost, type Bar } from '../figure.ts';
import { DAY_MS, DAYS, type EventName, type Game, idsOf, pairsOf, peerRows } from './fill.ts';

interface Filter {
  /** From `since` (inclusive) to `until` (exclusive), in ClickHouse format; absent for all time. */
  readonly range?: Range;
  readonly names?: readonly EventName[];
}

interface Range {
  readonly since: string;
  readonly until: string;
}

/** A table or view with the column names of `events`, so that a query can run on several sources. */
type Source = ReturnType<typeof createSource>;

const timeOf = (text: string) => `toDateTime64('${text}', 3, 'UTC')`;
const listOf = (names: readonly string[]) => names.map((name) => `'${name}'`).join(', ');

function conditionsOf({ range, names }: Filter, columns: { time: string; name: string }): string[] {
  const times = range && [`${columns.time} >= ${timeOf(range.since)}`, `${columns.time} < ${timeOf(range.until)}`];
  const isNamed = names && `${columns.name} ${names.length === 1 ? `= ${listOf(names)}` : `IN (${listOf(names)})`}`;
  return [...(times ?? []), ...(isNamed === undefined ? [] : [isNamed])];
}

/** @param name `events` or a view with the same columns */
function createSource(name: string, environmentId: string, person: string) {
  const rows = (filter: Filter) =>
    `${name} WHERE ${[`environment_id = '${environmentId}'`, ...conditionsOf(filter, { time: 'event_time', name: 'event_name' })].join(' AND ')}`;
  return { rows, peopleRows: rows, person };
}

const peerWhere = ({ range, names }: Filter) =>
  conditionsOf(
    {
      ...(range && { range }),
      ...(names && { names: names.map((name) => (name === '' ? ('$pageview' as EventName) : name)) }),
    },
    { time: 'event.timestamp', name: 'event.event' },
  ).join(' AND ');

const PEER: Source = {
  rows: (filter) => peerRows({ where: peerWhere(filter), people: false }),
  peopleRows: (filter) => peerRows({ where: peerWhere(filter), people: true }),
  person: 'person',
};

type Scene = Awaited<ReturnType<typeof createScene>>;

const MONTH_DAYS = 30;
const FIRST_WEEK_DAY = 13;

/** @param day the day to query, counted from 0 */
function rangesOf({ startMs, endMs }: Game, day = DAYS - 1) {
  const startOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);
  const range = (since: number, until: number): Range => ({ since: startOf(since), until: startOf(until) });
  const dayMs = startMs + day * DAY_MS;
  const monday = startMs + ((8 - new Date(startMs).getUTCDay()) % 7) * DAY_MS;
  return {
    day: range(dayMs, dayMs + DAY_MS),
    week: range(startMs + FIRST_WEEK_DAY * DAY_MS, startMs + (FIRST_WEEK_DAY + 7) * DAY_MS),
    month: range(endMs - MONTH_DAYS * DAY_MS, endMs),
    weeks: range(monday, endMs),
  };
}

export async function createScene(engine: Engine, game: Game, day?: number) {
  const { environmentId } = game;
  return {
    environmentId,
    raw: createSource('events', environmentId, 'identity_key'),
    exact: createSource('events_exact', environmentId, 'identity_key'),
    analysis: createSource('analysis_events_raw', environmentId, 'person_key'),
    peer: PEER,
    ranges: rangesOf(game, day),
    player: await findPerson(engine, game),
  };
}

async function findPerson(engine: Engine, game: Game) {
  const { first } = pairsOf(game).late;
  const [one, other] = [idsOf(first), idsOf(first + 1)];
  const keys = [one.anonymousKey, one.userKey, other.anonymousKey, other.userKey].join(', ');
  const texts = [one.anonymousId, one.userId, other.anonymousId, other.userId].join(', ');
  const rows = `FROM events WHERE environment_id = '${game.environmentId}'`;
  const [[person = '', identity = '', ...rest] = []] = await engine.queryRows(
    `SELECT lower(hex(arrayMin([${keys}]))), lower(hex(${one.anonymousKey})), ${texts},
       (SELECT min(message_id) ${rows} AND identity_key = ${one.anonymousKey}), (SELECT min(user_id) ${rows} AND user_id != '')`,
  );
  const [messageId = '', userId = ''] = rest.slice(4);
  return { person, identity, userId, ids: rest.slice(0, 4), messageId };
}

export interface AnalystQuery {
  readonly name: string;
  readonly isSingleDay?: true;
  readonly raw: string;
  /** On deduplicated rows; absent if no analyst would write it. */
  readonly exact?: string;
  readonly identified: string;
  readonly peer: string;
  /** The peer must return the same result as `identified`, because duplicates do not affect the result. */
  readonly mustEqualPeer?: true;
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

export function basicQueries(scene: Scene): AnalystQuery[] {
  const { day, month } = scene.ranges;
  return [
    {
      name: 'events in one day',
      isSingleDay: true,
      ...ofAll(scene, (source) => `SELECT count() FROM ${source.rows({ range: day })}`),
      identified: `SELECT sum(events) FROM ${eventsPerDay(scene)} AND event_day >= '${day.since}' AND event_day < '${day.until}'`,
    },
    {
      name: 'people in one day',
      isSingleDay: true,
      mustEqualPeer: true,
      ...ofAll(scene, (source) => `SELECT uniqExact(${source.person}) FROM ${source.peopleRows({ range: day })}`),
    },
    { name: 'one event in one day, by property', isSingleDay: true, ...ofAll(scene, (from) => byProperty(from, day)) },
    {
      name: 'active people per day, 30 days',
      ...ofAll(
        scene,
        (source) =>
          `SELECT toDate(event_time) AS day, uniqExact(${source.person}) FROM ${source.peopleRows({ range: month })} GROUP BY day ORDER BY day`,
      ),
      identified: `SELECT day, uniqExact(person_key) FROM ${personDays(scene, month)} GROUP BY day ORDER BY day`,
      mustEqualPeer: true,
      bars: [atMost('value', 1_500, 300)],
    },
    {
      name: 'count of all events',
      ...ofAll(scene, (source) => `SELECT count() FROM ${source.rows({})}`),
      identified: `SELECT sum(events) FROM ${eventsPerDay(scene)}`,
    },
    {
      name: 'one person’s timeline',
      bars: [atMost('value', 100, 30)],
      ...timeline(scene),
      readRowsBar: atMost('value', 500_000),
    },
    { name: 'one person’s timeline, 7 days', ...timeline(scene, scene.ranges.week) },
    { name: 'funnel with three steps, one day', isSingleDay: true, ...ofAll(scene, (source) => funnel(source, day)) },
    { name: 'one message by its id', bars: [atMost('value', 50, 15)], ...oneMessage(scene) },
  ];
}

const eventsPerDay = ({ environmentId }: Scene): string => `events_per_day WHERE environment_id = '${environmentId}'`;

const personDays = ({ environmentId }: Scene, { since, until }: Range): string =>
  `person_days WHERE environment_id = '${environmentId}' AND day >= '${since}' AND day < '${until}'`;

const byProperty = (source: Source, range: Range) =>
  `SELECT JSONExtractString(properties, 'map') AS map, count() AS events, uniqExact(${source.person}) AS people
   FROM ${source.peopleRows({ range, names: ['level_finished'] })} GROUP BY map ORDER BY map`;

function funnel(source: Source, range: Range): string {
  const steps = ['level_started', 'level_finished', 'item_bought'] as const;
  const conditions = steps.map((step) => `event_name = '${step}'`).join(', ');
  return `SELECT step, count() FROM (
    SELECT ${source.person} AS who, windowFunnel(3600)(toDateTime(event_time), ${conditions}) AS step
    FROM ${source.peopleRows({ range, names: steps })} GROUP BY who) GROUP BY step ORDER BY step`;
}

function timeline(scene: Scene, range?: Range): Pick<AnalystQuery, 'raw' | 'exact' | 'identified' | 'peer'> {
  const { environmentId, player } = scene;
  const columns = 'event_time, event_name, session_id, page_path, properties';
  const filter = range === undefined ? {} : { range };
  const ofIdentity = ({ rows }: Source) =>
    `SELECT ${columns} FROM ${rows(filter)} AND identity_key = unhex('${player.identity}') ORDER BY event_time`;
  const times = range === undefined ? '' : `WHERE event_time >= '${range.since}' AND event_time < '${range.until}'`;
  const ids = player.ids.map((id) => `'${id}'`).join(', ');
  return {
    raw: ofIdentity(scene.raw),
    exact: ofIdentity(scene.exact),
    identified: `SELECT ${columns} FROM person_timeline(environment = '${environmentId}', person = '${player.person}') ${times} ORDER BY event_time`,
    // With the peer's schema, a separate query must first find the person's ids.
    peer: `SELECT ${columns} FROM ${scene.peer.rows(filter)} WHERE distinct_id IN (${ids}) ORDER BY event_time`,
  };
}

function oneMessage(scene: Scene): Pick<AnalystQuery, 'raw' | 'exact' | 'identified' | 'peer'> {
  const of = (name: string) =>
    `SELECT * FROM ${name} WHERE environment_id = '${scene.environmentId}' AND message_id = '${scene.player.messageId}'`;
  return {
    raw: of('events'),
    exact: of('events_exact'),
    identified: of('events_identified'),
    peer: `SELECT * FROM ${scene.peer.rows({})} WHERE message_id = '${scene.player.messageId}'`,
  };
}

export function cookbookQueries(scene: Scene): AnalystQuery[] {
  return [
    retention(scene),
    stickiness(scene),
    sessionsPerDay(scene),
    firstTouch(scene),
    { name: 'top paths in one day', isSingleDay: true, ...ofAll(scene, (from) => topPaths(from, scene.ranges.day)) },
    oneUser(scene),
    distribution(scene),
  ];
}

interface Active {
  readonly rows: string;
  readonly person: string;
  readonly day: string;
}

const activeOf = (source: Source, range: Scene['ranges']['day']): Active => ({
  rows: source.peopleRows({ range }),
  person: source.person,
  day: 'toDate(event_time)',
});

function ofActive(scene: Scene, range: Scene['ranges']['day'], write: (active: Active) => string) {
  return {
    raw: write(activeOf(scene.raw, range)),
    exact: write(activeOf(scene.exact, range)),
    identified: write({ rows: personDays(scene, range), person: 'person_key', day: 'day' }),
    peer: write(activeOf(scene.peer, range)),
  };
}

const retention = (scene: Scene): AnalystQuery => ({
  name: 'retention over 8 weeks',
  mustEqualPeer: true,
  ...ofActive(
    scene,
    scene.ranges.weeks,
    ({ rows, person, day }) => `
    SELECT arrayMin(weeks) AS cohort, dateDiff('week', cohort, arrayJoin(weeks)) AS week, count()
    FROM (SELECT ${person} AS who, groupUniqArray(toMonday(${day})) AS weeks FROM ${rows} GROUP BY who)
    GROUP BY cohort, week ORDER BY cohort, week`,
  ),
});

const stickiness = (scene: Scene): AnalystQuery => ({
  name: 'stickiness over 30 days',
  mustEqualPeer: true,
  ...ofActive(
    scene,
    scene.ranges.month,
    ({ rows, person, day }) => `
    SELECT sum(days) / 30 AS daily, count() AS monthly, daily / monthly
    FROM (SELECT ${person} AS who, uniqExact(${day}) AS days FROM ${rows} GROUP BY who)`,
  ),
});

function sessionsPerDay(scene: Scene): AnalystQuery {
  const { month } = scene.ranges;
  const daily = `count(), avg(dateDiff('second', started_at, ended_at))`;
  const ofEvents = (source: Source) => `
    SELECT toDate(started_at) AS day, ${daily} FROM (
      SELECT session_id, min(event_time) AS started_at, max(event_time) AS ended_at FROM ${source.rows({ range: month })} GROUP BY session_id)
    GROUP BY day ORDER BY day`;
  return {
    name: 'sessions per day, 30 days',
    raw: ofEvents(scene.raw),
    exact: ofEvents(scene.exact),
    identified: `SELECT toDate(started_at) AS day, ${daily}
      FROM sessions_between(environment = '${scene.environmentId}', since = '${month.since}', until = '${month.until}') GROUP BY day ORDER BY day`,
    peer: ofEvents(scene.peer),
  };
}

function firstTouch(scene: Scene): AnalystQuery {
  const ofEvents = (source: Source) => `
    SELECT extractURLParameter(url, 'utm_campaign') AS campaign, count() AS people
    FROM (SELECT ${source.person} AS who, argMin(page_url, event_time) AS url FROM ${source.peopleRows({})} GROUP BY who)
    GROUP BY campaign ORDER BY campaign`;
  return {
    name: 'first touch by campaign, all time',
    raw: ofEvents(scene.raw),
    identified: `SELECT first_campaign AS campaign, count() AS people FROM persons WHERE environment_id = '${scene.environmentId}'
      GROUP BY campaign ORDER BY campaign`,
    peer: ofEvents(scene.peer),
  };
}

const topPaths = (source: Source, range: Range) => `
  SELECT path, count() AS sessions FROM (
    SELECT arrayStringConcat(arraySlice(arrayMap(page -> page.2, arraySort(groupArray((event_time, page_path)))), 1, 3), ' > ') AS path
    FROM ${source.rows({ range, names: [''] })} GROUP BY session_id)
  GROUP BY path ORDER BY sessions DESC, path LIMIT 20`;

function oneUser({ environmentId, raw, peer, player }: Scene): AnalystQuery {
  const columns = 'event_time, event_name, session_id, page_path, properties';
  const joined = peer.peopleRows({});
  return {
    name: 'one person by user id',
    bars: [atMost('value', 100)],
    raw: `SELECT ${columns} FROM ${raw.rows({})} AND user_id = '${player.userId}' ORDER BY event_time`,
    identified: `SELECT ${columns} FROM user_timeline(environment = '${environmentId}', user = '${player.userId}') ORDER BY event_time`,
    peer: `SELECT ${columns} FROM ${joined}
      WHERE person = (SELECT any(person) FROM ${joined} WHERE distinct_id = '${player.userId}') ORDER BY event_time`,
  };
}

/** SQL for two properties: parsed, found in the text, from `properties_between`, or from the columns of `PROPERTY_COLUMNS`. */
const PROPERTIES = {
  parsed: { mode: "JSONExtractString(properties, 'mode')", score: "JSONExtractInt(properties, 'score')" },
  text: { mode: "propertyText(properties, 'mode')", score: "propertyNumber(properties, 'score')" },
  safe: { mode: 'text', score: 'number' },
  column: { mode: 'property_mode', score: 'property_score' },
} as const;
type Properties = keyof typeof PROPERTIES;

/** Options of `columns add`. */
export const PROPERTY_COLUMNS = [
  ['--name', 'mode', '--path', 'mode', '--type', 'LowCardinality(String)', '--default=none'],
  ['--name', 'score', '--path', 'score', '--type', 'Int64', '--default=0'],
] as const;

/** Declares both properties safe. */
export const declareProperties = ({ environmentId }: Game) =>
  `INSERT INTO environment_settings VALUES ('${environmentId}', 'UTC', ['mode', 'score'], 1)`;

/** Queries for properties from the JSON text, from `properties_between` and from columns. */
export function propertyQueries({ ranges: { day, month }, analysis, environmentId }: Scene) {
  const write = (of: Exclude<Properties, 'parsed'>) => {
    const { mode, score } = PROPERTIES[of];
    const rowsIn = (range: Range) => {
      if (of !== 'safe') return analysis.rows({ range, names: ['match_finished'] });
      const parameters = `environment = '${environmentId}', since = '${range.since} 00:00:00', until = '${range.until} 00:00:00'`;
      return `properties_between(${parameters}, text = 'mode', number = 'score') WHERE event_name = 'match_finished'`;
    };
    return {
      'distribution of a property, 30 days': distributionOf(of, rowsIn(month)),
      'sum of a property, 30 days': `SELECT sum(${score}) FROM ${rowsIn(month)}`,
      'count by a property, 30 days': `SELECT ${mode} AS mode, count() FROM ${rowsIn(month)} GROUP BY mode ORDER BY mode`,
      'people by a property, one day': `SELECT ${mode} AS mode, uniqExact(person_key) FROM ${rowsIn(day)} GROUP BY mode ORDER BY mode`,
    };
  };
  return { text: write('text'), safe: write('safe'), column: write('column') };
}

const distributionOf = (of: Properties, rows: string) => {
  const { mode, score } = PROPERTIES[of];
  return `SELECT ${mode} AS mode, count(), quantiles(0.1, 0.5, 0.9)(${score}) FROM ${rows} GROUP BY mode ORDER BY mode`;
};

function distribution(scene: Scene): AnalystQuery {
  const of = (source: Source) =>
    distributionOf('parsed', source.rows({ range: scene.ranges.month, names: ['match_finished'] }));
  return {
    name: 'distribution of a property, 30 days',
    raw: of(scene.raw),
    exact: of(scene.exact),
    identified: of(scene.analysis),
    peer: of(scene.peer),
  };
}
