import { COUNT_STEPS_S, type CountQuery, readCountQuery } from '@playline/events';
import { type QueryRows, readRows } from '@playline/stores';
import { awaitRunningInserts, type Drift } from '../derive/drift.ts';

const HOUR_S = 3_600;
const LONGEST_S = COUNT_STEPS_S.at(-1)!;
/** Includes the current interval of four hours and a whole day before it. */
const SINCE = `(toStartOfInterval(now('UTC'), toIntervalSecond(${LONGEST_S})) - INTERVAL 1 DAY)`;
/** A comparison may see an insert whose minutes are not marked yet. */
const COMPARISONS_MAX = 3;

/** Marks the minutes that `findCountDrift` compares, so that the event writer counts them again. */
export const RECOUNT = `INSERT INTO counted_minutes (minute_at, stored_at)
  SELECT ${SINCE} + toIntervalMinute(number), now64(3, 'UTC') FROM numbers(${(24 * HOUR_S + LONGEST_S) / 60})`;

const selectHours = (all: string) => `SELECT DISTINCT toUnixTimestamp(toStartOfHour(at, 'UTC')) FROM (
  SELECT received_at AS at FROM ${all}events WHERE received_at >= ${SINCE}
  UNION ALL SELECT received_at FROM message_rejections WHERE received_at >= ${SINCE}
  UNION ALL SELECT start_at FROM event_counts WHERE start_at >= ${SINCE})`;

/**
 * Compares the overview's counts with the events of the last day. A count that is too low is reported as missing.
 * @param all prefix of tables that contain the rows of all nodes
 */
export async function findCountDrift(query: QueryRows, onProgress: (line: string) => void, all = ''): Promise<Drift> {
  onProgress('comparing event_counts of the last day with events');
  const drift = { table: 'event_counts', missing: 0, unfounded: 0 };
  try {
    const hours = (await readRows(query(selectHours(all)))).map(([hour]) => Number(hour));
    const longest = new Set(hours.map((hour) => hour - (hour % LONGEST_S)));
    const countsIn = await readCountQuery(query);
    const statements = [...hours.map((hour) => compareMinutes(hour, countsIn, all)), ...[...longest].map(compareSums)];
    for (const statement of statements) {
      const [missing, unfounded] = await compareAgain(query, statement);
      drift.missing += missing;
      drift.unfounded += unfounded;
    }
    return { ...drift, fault: null };
  } catch (fault) {
    return { ...drift, fault: fault instanceof Error ? fault.message : String(fault) };
  }
}

/** Marks all days of a node, so that the event writer counts them again. */
export const RECOUNT_DAYS = `INSERT INTO counted_days (environment_id, day, stored_at)
  SELECT DISTINCT environment_id, day, now64(3, 'UTC') FROM (
    SELECT environment_id, day FROM counted_days UNION ALL SELECT environment_id, toDate(event_time) FROM events)`;

const SELECT_MONTHS = `SELECT DISTINCT toString(month) FROM (
  SELECT toStartOfMonth(day) AS month FROM event_days UNION ALL SELECT toStartOfMonth(event_time) FROM events) ORDER BY month`;

/** Compares the days of a month that are not open with the events of the same node. */
const compareMonth = (month: string) => `SELECT countIf(counted < expected), countIf(counted > expected) FROM (
  SELECT environment_id, day, event_name, type, sum(in_table) AS counted, sum(in_events) AS expected FROM (
    SELECT environment_id, day, event_name, type, events AS in_table, 0 AS in_events FROM event_days FINAL
    WHERE toStartOfMonth(day) = '${month}'
    UNION ALL
    SELECT environment_id, day, event_name, type, 0, events
    FROM derived_event_days(since = '${month} 00:00:00', until = addMonths(toDateTime64('${month} 00:00:00', 3, 'UTC'), 1))
  )
  WHERE (environment_id, day) NOT IN (
    SELECT environment_id, day FROM counted_days GROUP BY environment_id, day HAVING max(stored_at) >= max(counted_at)
  )
  GROUP BY environment_id, day, event_name, type HAVING counted != expected
)`;

export async function findDayDrift(nodes: readonly QueryRows[], onProgress: (line: string) => void): Promise<Drift> {
  onProgress('comparing event_days with events');
  const drift = { table: 'event_days', missing: 0, unfounded: 0 };
  try {
    for (const node of nodes) {
      for (const [month] of await readRows(node(SELECT_MONTHS))) {
        const [missing, unfounded] = await compareAgain(node, compareMonth(String(month)));
        drift.missing += missing;
        drift.unfounded += unfounded;
      }
    }
    return { ...drift, fault: null };
  } catch (fault) {
    return { ...drift, fault: fault instanceof Error ? fault.message : String(fault) };
  }
}

const KEY = 'environment_id, step_s, start_at, kind, name, field, library, library_version';
const countsOf = (sinceS: number, lengthS: number) =>
  `event_counts FINAL WHERE start_at >= ${sinceS} AND start_at < ${sinceS + lengthS}`;

/** Minutes that are not counted yet, and erased messages, which remain in the counts, are not differences. */
function compareMinutes(sinceS: number, countsIn: CountQuery, all: string): string {
  return `SELECT countIf(counted < expected), countIf(counted > expected AND start_at >= erased.until_at)
    FROM (
      SELECT ${KEY}, sum(in_table) AS counted, sum(in_events) AS expected FROM (
        SELECT ${KEY}, messages AS in_table, 0 AS in_events FROM ${countsOf(sinceS, HOUR_S)} AND step_s = 60
        UNION ALL
        SELECT ${KEY}, 0, messages FROM (${countsIn(sinceS, sinceS + HOUR_S)})
      )
      WHERE start_at NOT IN (
        SELECT minute_at FROM ${all}counted_minutes WHERE minute_at >= ${sinceS} AND minute_at < ${sinceS + HOUR_S}
        GROUP BY minute_at HAVING max(stored_at) >= max(counted_at)
      )
      GROUP BY ${KEY} HAVING counted != expected
    ) AS different
    LEFT JOIN (
      SELECT environment_id, max(fenced_at) + INTERVAL 10 MINUTE AS until_at FROM erasure_fences GROUP BY environment_id
    ) AS erased ON different.environment_id = erased.environment_id`;
}

/** Compares longer intervals with the sums of their minutes. */
function compareSums(sinceS: number): string {
  const counts = countsOf(sinceS, LONGEST_S);
  return `SELECT countIf(counted < expected), countIf(counted > expected)
    FROM (
      SELECT ${KEY}, sum(in_table) AS counted, sum(in_minutes) AS expected FROM (
        SELECT ${KEY}, messages AS in_table, 0 AS in_minutes FROM ${counts} AND step_s != 60
        UNION ALL
        SELECT
          environment_id, longer_s, toDateTime(intDiv(toUnixTimestamp(start_at), longer_s) * longer_s, 'UTC'),
          kind, name, field, library, library_version, 0, messages
        FROM (SELECT * FROM ${counts} AND step_s = 60) ARRAY JOIN [${COUNT_STEPS_S.slice(1).join(', ')}] AS longer_s
      )
      GROUP BY ${KEY} HAVING counted != expected
    )`;
}

async function compare(query: QueryRows, statement: string): Promise<[missing: number, unfounded: number]> {
  const [row = []] = await readRows(query(statement));
  const [missing = 0, unfounded = 0] = row.map(Number);
  return [missing, unfounded];
}

/** Compares until there is no difference, because an insert may end during a comparison. */
async function compareAgain(query: QueryRows, statement: string): Promise<[missing: number, unfounded: number]> {
  let found = await compare(query, statement);
  for (let round = 1; round < COMPARISONS_MAX && found[0] + found[1] > 0; round++) {
    await awaitRunningInserts(query);
    found = await compare(query, statement);
  }
  return found;
}
