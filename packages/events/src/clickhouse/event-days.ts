/** Fills the numbers of events per day (infra/clickhouse/schema/23-event-days.sql). */
import {
  type ClickHouseAccount,
  createQueryRows,
  IS_INSERT,
  onEachNode,
  quoteText,
  readRows,
  sendStatement,
} from '@playline/stores';

/** A day that receives events is not counted, because the next event would make the count useless. */
const SETTLE_S = 60;
/** Greatest step by which the clock of ClickHouse may be set back without hiding an insert. */
const CLOCK_STEP_S = 50;
/** Longer than a query needs from its first read to its last, so that no query combines a new mark with an old count. */
const MARK_AFTER_MS = 60_000;
/** Fraction of one core that counting may use. */
const CPU_SHARE = 0.01;
/** Enough for all days of a small deployment in one run. */
const BUDGET_MAX_MS = 5_000;
const STATEMENT_MAX_MS = 60_000;
/** A day that cannot be counted in time, because it has hundreds of millions of events, must not delay the others. */
const RETRY_AFTER_MS = 3_600_000;

export interface EventDays {
  /**
   * Counts days whose events changed, as many as the limit of CPU time allows, and marks those counted a minute ago.
   * @throws the first fault, after the other days and nodes
   */
  update(): Promise<void>;
}

export interface EventDaysOptions {
  /** Monotonic clock. */
  readonly nowMs?: () => number;
  readonly settleS?: number;
}

interface Due {
  readonly day: string;
  readonly environments: readonly string[];
  /** Every insert and deletion of the day ended before this time. */
  readonly countedAt: string;
}

/** Several processes may update the same tables, because a count depends only on the stored rows. */
export function createEventDays(account: ClickHouseAccount, options: EventDaysOptions = {}): EventDays {
  const { nowMs = () => performance.now(), settleS = SETTLE_S } = options;
  const nodes = onEachNode(account).map((node) => createNode(node, { nowMs, settleS }));
  let [budgetMs, checkedMs] = [BUDGET_MAX_MS, nowMs()];
  return {
    update: async () => {
      budgetMs = Math.min(BUDGET_MAX_MS, budgetMs + CPU_SHARE * (nowMs() - checkedMs));
      checkedMs = nowMs();
      const faults: unknown[] = [];
      const spend = async (work: () => Promise<void>) => {
        if (budgetMs <= 0) return;
        const startedMs = performance.now();
        await work().catch((fault) => faults.push(fault));
        budgetMs -= performance.now() - startedMs;
      };
      for (const node of nodes) {
        await spend(node.markCounted);
        let due: readonly Due[] = [];
        await spend(async () => {
          due = await node.readDue();
        });
        for (const each of due) await spend(() => node.count(each));
      }
      // The node that was last may have been omitted.
      nodes.reverse();
      if (faults.length > 0) throw faults[0];
    },
  };
}

function createNode(account: ClickHouseAccount, { nowMs, settleS }: Required<EventDaysOptions>) {
  const query = createQueryRows(account);
  const run = async (body: string) => {
    const settings = { wait_end_of_query: '1', max_threads: '1', max_query_size: String(body.length + 1_000) };
    await (await sendStatement(account, { body, settings, deadlineMs: STATEMENT_MAX_MS })).text();
  };
  /** Days that are counted but not marked. */
  let counted: (Due & { readonly atMs: number })[] = [];
  const failedMs = new Map<string, number>();
  return {
    async markCounted() {
      const ready = counted.filter(({ atMs }) => nowMs() - atMs >= MARK_AFTER_MS);
      const rows = ready.flatMap(({ day, environments, countedAt }) =>
        environments.map((environment) => `(${quoteText(environment)}, '${day}', '${countedAt}')`),
      );
      if (rows.length === 0) return;
      await run(`INSERT INTO counted_days (environment_id, day, counted_at) VALUES ${rows.join(', ')}`);
      counted = counted.filter((each) => !ready.includes(each));
    },
    /** The latest days first, because most queries concern them. */
    async readDue(): Promise<Due[]> {
      const rows = await readRows(query(selectDue(settleS)));
      const waiting = new Map(
        counted.flatMap(({ day, environments, countedAt }) =>
          environments.map((environment) => [`${day} ${environment}`, countedAt] as const),
        ),
      );
      const due = new Map<string, Due>();
      for (const [day = '', environment = '', storedAt = '', countedAt = ''] of rows.map((row) => row.map(String))) {
        if (storedAt < (waiting.get(`${day} ${environment}`) ?? '')) continue;
        if (nowMs() - (failedMs.get(day) ?? Number.NEGATIVE_INFINITY) < RETRY_AFTER_MS) continue;
        due.set(day, { day, environments: [...(due.get(day)?.environments ?? []), environment], countedAt });
      }
      return [...due.values()];
    },
    async count(due: Due) {
      failedMs.set(due.day, nowMs());
      await run(countDay(due));
      failedMs.delete(due.day);
      counted.push({ ...due, atMs: nowMs() });
    },
  };
}

/** The days whose last insert has ended and is older than a minute. */
const selectDue = (settleS: number) => `WITH (
    SELECT min(started_at) FROM (
      SELECT now64(3, 'UTC') - toIntervalMillisecond(toInt64(1000 * elapsed) + 1) AS started_at FROM system.processes
      WHERE ${IS_INSERT}
      UNION ALL SELECT toDateTime64(create_time, 3, 'UTC') FROM system.mutations
      WHERE database = currentDatabase() AND table = 'events' AND NOT is_done AND NOT is_killed
      UNION ALL SELECT now64(3, 'UTC') - ${Math.min(settleS, CLOCK_STEP_S)})
  ) AS ended_at
  SELECT toString(day), environment_id, toString(max(stored_at) AS last_at), toString(ended_at) FROM counted_days
  GROUP BY environment_id, day
  HAVING last_at >= max(counted_at) AND last_at < ended_at AND last_at <= now64(3, 'UTC') - ${settleS}
  ORDER BY day DESC, environment_id`;

/** Names without events get a count of zero, because their events may have been erased. */
function countDay({ day, environments, countedAt }: Due): string {
  const inEnvironments = `environment_id IN (${environments.map(quoteText).join(', ')})`;
  const since = `toDateTime64('${day} 00:00:00', 3, 'UTC')`;
  return `INSERT INTO event_days
    SELECT environment_id, day, event_name, type, sum(events), max(first_at), max(last_at), '${countedAt}' FROM (
      SELECT * FROM derived_event_days(since = ${since}, until = ${since} + INTERVAL 1 DAY) WHERE ${inEnvironments}
      UNION ALL
      SELECT environment_id, day, event_name, type, 0, toDateTime64(0, 3, 'UTC'), toDateTime64(0, 3, 'UTC')
      FROM event_days WHERE day = '${day}' AND ${inEnvironments}
    ) GROUP BY environment_id, day, event_name, type`;
}
