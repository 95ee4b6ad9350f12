/** Fills the count tables of the portal's overview (infra/clickhouse/schema/32-event-counts.sql). */
import {
  type ClickHouseAccount,
  createQueryRows,
  IS_INSERT,
  onEachNode,
  overAllNodes,
  readRows,
  sendStatement,
} from '@playline/stores';
import { type CountQuery, readCountQuery, timeOf } from '../count-query.ts';
import { COUNT_STEPS_S } from '../store.ts';

const MINUTE_S = 60;
const HOUR_S = 3_600;
const DAY_S = 24 * HOUR_S;
/** Time ranges of the overview, in seconds. */
export const COUNTED_SPANS_S = [HOUR_S, DAY_S, 7 * DAY_S, 30 * DAY_S] as const;

/** Most blocks are stored within this time, so that few minutes are counted twice. */
const SETTLE_S = 5;
/** A time range of players is counted again after this multiple of the duration of its last count. */
const REST_FACTOR = 200;
const PLAYERS_MIN_MS = 60_000;
const SLOTS_PER_SPAN = 12;
const STATEMENT_MAX_MS = 60_000;
/** Limits the memory of a statement. A single minute may have more rows. */
const RANGE_ROWS_MAX = 1_000_000;
/** Limits the length of a statement that lists the minutes. ClickHouse accepts 262,144 characters. */
const RANGE_MINUTES_MAX = 2 * 24 * 60;

export interface EventCounts {
  /** Counts the finished minutes whose messages changed, and then the active players. */
  update(): Promise<void>;
}

/**
 * Several processes may update the same tables, because a count depends only on the stored rows. A process does not
 * count again what another process has counted.
 */
export function createEventCounts(account: ClickHouseAccount): EventCounts {
  const query = createQueryRows(account);
  const nodes = onEachNode(account).map((node) => createQueryRows(node));
  // Each shard notes the minutes of its rows.
  const noted = `${overAllNodes(account).database}.counted_minutes`;
  const run = async (body: string, settings: Readonly<Record<string, string>> = {}) => {
    const request = { body, settings: { wait_end_of_query: '1', ...settings }, deadlineMs: STATEMENT_MAX_MS };
    await (await sendStatement(account, request)).text();
  };
  const dueAt = new Map<number, number>();
  return {
    update: async () => {
      // Read first: a later insert may not be visible to the counts, so its minutes remain due.
      const times = (await Promise.all(nodes.map((node) => readRows(node(NOW))))).map(([row = []]) => row);
      // The earliest by the clocks of all nodes, so that no insert counts as earlier.
      const countedAt = times.map(([at]) => String(at)).sort()[0]!;
      const finishedS = times.map(([, at]) => Number(at)).reduce((first, at) => Math.min(first, at));
      const due = (await readRows(query(selectDueMinutes(noted)))).map(
        ([minute, stored]) => [Number(minute), Number(stored)] as const,
      );
      // Newest first, so that a long import does not delay the numbers of the last day.
      let tables: readonly CountTable[] | null = null;
      for (const range of toRanges(due, finishedS).reverse()) {
        tables ??= [{ ...COUNTS, countsIn: await readCountQuery(query) }, DELAYS];
        await countRange(run, range, { countedAt, noted, tables });
      }
      for (const spanS of COUNTED_SPANS_S) {
        const startedAt = performance.now();
        if (startedAt < (dueAt.get(spanS) ?? 0)) continue;
        try {
          // One thread, because pages would have to wait for the cores.
          await run(countPlayers(spanS, finishedS), { max_threads: '1' });
        } finally {
          const endedAt = performance.now();
          dueAt.set(spanS, endedAt + Math.max(PLAYERS_MIN_MS, REST_FACTOR * (endedAt - startedAt)));
        }
      }
    },
  };
}

/** The time before which every insert has ended, and the end of the last finished minute. */
const NOW = `SELECT toString(min(started_at)), toUnixTimestamp(toStartOfMinute(now())) FROM (
  SELECT now64(3, 'UTC') - toIntervalMillisecond(toInt64(1000 * elapsed) + 1) AS started_at FROM system.processes
  WHERE ${IS_INSERT}
  UNION ALL SELECT now64(3, 'UTC'))`;

/** The due minutes, each with the number of rows stored for this and all earlier minutes. */
const selectDueMinutes = (noted: string) => `SELECT minute, stored_until FROM (
    SELECT toUnixTimestamp(minute_at) AS minute, max(stored_at) >= max(counted_at) AS is_due, sum(sum(stored)) OVER (ORDER BY minute_at) AS stored_until
    FROM ${noted} WHERE minute_at <= now() - ${MINUTE_S + SETTLE_S} GROUP BY minute_at
  ) WHERE is_due ORDER BY minute`;

interface MinuteRange {
  readonly minutes: readonly number[];
  readonly sinceS: number;
  readonly untilS: number;
}

/**
 * Combines minutes so that a long import needs few statements, and a statement does not count many rows that are already
 * counted. A range includes the minute after it, because gateways may publish two copies of a message in another order
 * than they received them.
 * @param due minutes in ascending order, in epoch seconds
 */
function toRanges(due: readonly (readonly [minute: number, storedUntil: number])[], finishedS: number): MinuteRange[] {
  const ranges: { minutes: number[]; storedAtFirst: number }[] = [];
  for (const [minute, storedUntil] of due) {
    const last = ranges.at(-1);
    const isNear =
      last &&
      minute - last.minutes.at(-1)! < HOUR_S &&
      last.minutes.length < RANGE_MINUTES_MAX &&
      storedUntil - last.storedAtFirst <= RANGE_ROWS_MAX;
    if (isNear) last.minutes.push(minute);
    else ranges.push({ minutes: [minute], storedAtFirst: storedUntil });
  }
  return ranges.map(({ minutes }) => ({
    minutes,
    sinceS: minutes[0]!,
    untilS: Math.min(minutes.at(-1)! + 2 * MINUTE_S, finishedS),
  }));
}

/** A table of counts, and what it distinguishes within an interval. */
interface CountTable {
  readonly name: string;
  readonly details: string;
  readonly countsIn: CountQuery;
}

const COUNTS = { name: 'event_counts', details: 'kind, name, field, library, library_version' } as const;
const DELAYS: CountTable = {
  name: 'event_delays',
  details: 'delay_ms',
  countsIn: (sinceS, untilS) =>
    `SELECT * FROM derived_event_delays(since = ${timeOf(sinceS)}, until = ${timeOf(untilS)})`,
};

interface CountOptions {
  readonly countedAt: string;
  readonly noted: string;
  readonly tables: readonly CountTable[];
}

/** Earlier counts of the range are included as 0, because an earlier copy may have moved the only message of a count. */
async function countRange(
  run: (statement: string) => Promise<void>,
  { minutes, sinceS, untilS }: MinuteRange,
  { countedAt, noted, tables }: CountOptions,
) {
  for (const { name, details, countsIn } of tables) {
    const columns = `environment_id, step_s, start_at, ${details}`;
    await run(`INSERT INTO ${name} SELECT ${columns}, sum(messages), '${countedAt}' FROM (
      SELECT ${columns}, messages
      FROM (${countsIn(sinceS, untilS)})
      UNION ALL
      SELECT ${columns}, 0 FROM ${name} WHERE step_s = ${MINUTE_S} AND start_at >= ${sinceS} AND start_at < ${untilS}
    ) GROUP BY ${columns}`);
    for (const [index, stepS] of COUNT_STEPS_S.entries()) {
      const shorterS = COUNT_STEPS_S[index - 1];
      if (shorterS === undefined) continue;
      await run(`INSERT INTO ${name}
        SELECT environment_id, ${stepS}, toDateTime(intDiv(toUnixTimestamp(start_at), ${stepS}) * ${stepS}, 'UTC') AS at, ${details}, sum(messages), '${countedAt}'
        FROM ${name} FINAL WHERE step_s = ${shorterS} AND start_at >= ${sinceS - (sinceS % stepS)} AND start_at < ${Math.ceil(untilS / stepS) * stepS} GROUP BY ALL`);
    }
  }
  // Last, so that minutes of an interrupted count remain due.
  await run(`INSERT INTO ${noted} (minute_at, counted_at) SELECT arrayJoin([${minutes.join(', ')}]), '${countedAt}'`);
}

/** Environments whose players have left the time range get a count of zero. */
const countPlayers = (spanS: number, untilS: number) => `INSERT INTO player_counts
  SELECT environment_id, ${spanS}, ${untilS} - ${untilS} % ${spanS / SLOTS_PER_SPAN}, kind, name, sum(players), ${untilS}
  FROM (
    SELECT * FROM derived_player_counts(since = ${timeOf(untilS - spanS)}, until = ${timeOf(untilS)})
    UNION ALL
    SELECT DISTINCT environment_id, 'all', '', 0 FROM player_counts WHERE span_s = ${spanS}
  ) GROUP BY environment_id, kind, name`;
