import { type AnalystQuery, personDays } from './basic.ts';
import type { Scene } from './scene.ts';
import type { Source } from './sources.ts';

/** Queries that the team of a game runs each week. */
export function cookbookQueries(scene: Scene): AnalystQuery[] {
  return [
    retention(scene),
    stickiness(scene),
    sessionsADay(scene),
    firstTouch(scene),
    topPaths(scene),
    oneUser(scene),
    distribution(scene),
  ];
}

interface Active {
  readonly rows: string;
  readonly person: string;
  readonly day: string;
}

const activeOf = (source: Source, span: Scene['spans']['day']): Active => ({
  rows: source.peopleRows({ span }),
  person: source.person,
  day: 'toDate(event_time)',
});

/** Writes a query about whole days, from rows of events or from the view of active days. */
function ofActive(scene: Scene, span: Scene['spans']['day'], write: (active: Active) => string) {
  return {
    raw: write(activeOf(scene.raw, span)),
    exact: write(activeOf(scene.exact, span)),
    identified: write({ rows: personDays(scene, span), person: 'person_key', day: 'day' }),
    peer: write(activeOf(scene.peer, span)),
  };
}

/** For each week, how many of its new people returned in each later week. */
const retention = (scene: Scene): AnalystQuery => ({
  name: 'retention of 8 weeks',
  agrees: true,
  ...ofActive(
    scene,
    scene.spans.weeks,
    ({ rows, person, day }) => `
    SELECT arrayMin(weeks) AS cohort, dateDiff('week', cohort, arrayJoin(weeks)) AS week, count()
    FROM (SELECT ${person} AS who, groupUniqArray(toMonday(${day})) AS weeks FROM ${rows} GROUP BY who)
    GROUP BY cohort, week ORDER BY cohort, week`,
  ),
});

/** Average of active people per day, as a share of the active people of 30 days. */
const stickiness = (scene: Scene): AnalystQuery => ({
  name: 'stickiness of 30 days',
  agrees: true,
  ...ofActive(
    scene,
    scene.spans.month,
    ({ rows, person, day }) => `
    SELECT sum(days) / 30 AS daily, count() AS monthly, daily / monthly
    FROM (SELECT ${person} AS who, uniqExact(${day}) AS days FROM ${rows} GROUP BY who)`,
  ),
});

function sessionsADay(scene: Scene): AnalystQuery {
  const { month } = scene.spans;
  const daily = `count(), avg(dateDiff('second', started_at, ended_at))`;
  const ofEvents = (source: Source) => `
    SELECT toDate(started_at) AS day, ${daily} FROM (
      SELECT session_id, min(event_time) AS started_at, max(event_time) AS ended_at FROM ${source.rows({ span: month })} GROUP BY session_id)
    GROUP BY day ORDER BY day`;
  return {
    name: 'sessions a day, 30 days',
    raw: ofEvents(scene.raw),
    exact: ofEvents(scene.exact),
    identified: `SELECT toDate(started_at) AS day, ${daily}
      FROM sessions(environment = '${scene.environmentId}', since = '${month.since}', until = '${month.until}') GROUP BY day ORDER BY day`,
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

/** The first three pages of each session, most frequent first. */
function topPaths(scene: Scene): AnalystQuery {
  const of = (source: Source, route: string) => `
    SELECT arrayStringConcat(arraySlice(arrayMap(page -> page.2, arraySort(groupArray((event_time, ${route})))), 1, 3), ' > ') AS path
    FROM ${source.rows({ span: scene.spans.day, names: [''] })} GROUP BY session_id`;
  const top = (paths: string) =>
    `SELECT path, count() AS sessions FROM (${paths}) GROUP BY path ORDER BY sessions DESC, path LIMIT 20`;
  return {
    name: 'top paths of a day',
    isOfDay: true,
    raw: top(of(scene.raw, 'page_path')),
    exact: top(of(scene.exact, 'page_path')),
    identified: top(of(scene.analysis, 'page_route')),
    peer: top(of(scene.peer, 'page_path')),
  };
}

function oneUser({ environmentId, raw, peer, who }: Scene): AnalystQuery {
  const seen = (person: string, rows: string) => `
    SELECT ${person} AS who, count(), min(event_time), max(event_time), argMin(page_url, event_time) FROM ${rows} GROUP BY who`;
  const joined = peer.peopleRows({});
  return {
    name: 'one person by user id',
    raw: seen('identity_key', `${raw.rows({})} AND user_id = '${who.userId}'`),
    identified: `SELECT * FROM persons WHERE environment_id = '${environmentId}' AND person_key = (
      SELECT any(person_key) FROM analysis_events_raw WHERE environment_id = '${environmentId}' AND user_id = '${who.userId}')`,
    peer: seen(
      'person',
      `${joined} WHERE person = (SELECT any(person) FROM ${joined} WHERE distinct_id = '${who.userId}')`,
    ),
  };
}

function distribution(scene: Scene): AnalystQuery {
  const of = (source: Source) => `
    SELECT JSONExtractString(properties, 'mode') AS mode, count(), quantiles(0.1, 0.5, 0.9)(JSONExtractInt(properties, 'score'))
    FROM ${source.rows({ span: scene.spans.month, names: ['match_finished'] })} GROUP BY mode ORDER BY mode`;
  return {
    name: 'distribution of a property, 30 days',
    raw: of(scene.raw),
    exact: of(scene.exact),
    identified: of(scene.analysis),
    peer: of(scene.peer),
  };
}
