import { type QueryRows, readRows } from '@playline/stores';
import { awaitInserts, type Drift } from '../derive/drift.ts';

const HOUR_S = 3_600;
/** Includes the current hour and a whole day before it. */
const SINCE = "(toStartOfHour(now('UTC')) - INTERVAL 1 DAY)";
/** A comparison may see an insert whose minutes are not marked yet. */
const COMPARISONS_MAX = 3;

/** Marks the minutes that `findCountDrift` compares, so that the event writer counts them again. */
export const RECOUNT = `INSERT INTO counted_minutes (minute_at, stored_at)
  SELECT ${SINCE} + toIntervalMinute(number), now64(3, 'UTC') FROM numbers(25 * 60)`;

const HOURS = `SELECT DISTINCT toUnixTimestamp(toStartOfHour(at, 'UTC')) FROM (
  SELECT received_at AS at FROM events WHERE received_at >= ${SINCE}
  UNION ALL SELECT received_at FROM message_rejections WHERE received_at >= ${SINCE}
  UNION ALL SELECT start_at FROM event_counts WHERE start_at >= ${SINCE})`;

/** Compares the overview's counts with the events of the last day. A count that is too low is reported as missing. */
export async function findCountDrift(query: QueryRows, onProgress: (line: string) => void): Promise<Drift> {
  onProgress('comparing event_counts of the last day with events');
  const drift = { table: 'event_counts', missing: 0, unfounded: 0 };
  try {
    for (const [hour] of await readRows(query(HOURS))) {
      let [missing, unfounded] = await compare(query, Number(hour));
      for (let round = 1; round < COMPARISONS_MAX && missing + unfounded > 0; round++) {
        await awaitInserts(query);
        [missing, unfounded] = await compare(query, Number(hour));
      }
      drift.missing += missing;
      drift.unfounded += unfounded;
    }
    return { ...drift, fault: null };
  } catch (fault) {
    return { ...drift, fault: fault instanceof Error ? fault.message : String(fault) };
  }
}

const KEY = 'kind, name, field, library, library_version';

/** Minutes that are not counted yet, and erased messages, which remain in the counts, are not differences. */
async function compare(query: QueryRows, sinceS: number): Promise<[missing: number, unfounded: number]> {
  const untilS = sinceS + HOUR_S;
  const time = (atS: number) => `fromUnixTimestamp64Milli(${atS}000, 'UTC')`;
  const counts = `event_counts FINAL WHERE start_at >= ${sinceS} AND start_at < ${untilS}`;
  const [row = []] = await readRows(
    query(`SELECT countIf(counted < expected), countIf(counted > expected AND (step_s = ${HOUR_S} OR start_at >= erased.until_at))
      FROM (
        SELECT environment_id, step_s, start_at, ${KEY}, sum(in_table) AS counted, sum(in_events) AS expected FROM (
          SELECT environment_id, step_s, start_at, ${KEY}, messages AS in_table, 0 AS in_events FROM ${counts}
          UNION ALL
          SELECT environment_id, step_s, start_at, ${KEY}, 0, messages
          FROM derived_event_counts(since = ${time(sinceS)}, until = ${time(untilS)})
          UNION ALL
          SELECT environment_id, ${HOUR_S}, toStartOfHour(start_at), ${KEY}, 0, messages FROM ${counts} AND step_s = 60
        )
        WHERE step_s = ${HOUR_S} OR start_at NOT IN (
          SELECT minute_at FROM counted_minutes WHERE minute_at >= ${sinceS} AND minute_at < ${untilS}
          GROUP BY minute_at HAVING max(stored_at) >= max(counted_at)
        )
        GROUP BY environment_id, step_s, start_at, ${KEY} HAVING counted != expected
      ) AS different
      LEFT JOIN (
        SELECT environment_id, max(fenced_at) + INTERVAL 10 MINUTE AS until_at FROM erasure_fences GROUP BY environment_id
      ) AS erased ON different.environment_id = erased.environment_id`),
  );
  const [missing = 0, unfounded = 0] = row.map(Number);
  return [missing, unfounded];
}
