import { quoteText } from '@playline/errors';
import { askClickHouse, type ClickHouseAccount, type Closable, type Logger, type Metrics } from '@playline/runtime';

/** How long a query without its limits can run: short enough that it cannot fill the memory of the server. */
const POLL_MS = 500;
/** ClickHouse checks the time of a query between blocks, and its own error message says more. */
const GRACE_S = 2;
const REQUEST_MAX_MS = 5_000;
/** At most one log line in this time reports that running queries cannot be read. */
const REPORT_AGAIN_MS = 60_000;

/**
 * Running queries of accounts with the limited profiles of users.xml that run without a setting of their profile, or for
 * longer than it allows. `SETTINGS … = DEFAULT` removes a setting from the query, whatever its constraints are.
 */
const QUERIES_BEYOND_LIMITS = `
SELECT process.user, process.query_id, process.elapsed,
  arrayFilter(name -> NOT mapContains(process.Settings, name), limits.names) AS lifted
FROM system.processes AS process
INNER JOIN (
  SELECT account.user_name AS user, groupArray(element.setting_name) AS names,
    maxIf(toFloat64OrZero(element.value), element.setting_name = 'max_execution_time') AS seconds
  FROM system.settings_profile_elements AS account
  INNER JOIN system.settings_profile_elements AS element ON element.profile_name = account.inherit_profile
  WHERE account.inherit_profile IN ('analyst', 'portal', 'reader') AND element.value IS NOT NULL
  GROUP BY user
) AS limits ON limits.user = process.user
WHERE NOT process.is_cancelled AND (notEmpty(lifted) OR process.elapsed > limits.seconds + ${GRACE_S})
FORMAT JSONCompactEachRow`;

export interface QueryLimitsParts {
  /** May read running queries and stop them. */
  readonly account: ClickHouseAccount;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** Stops queries that run beyond the limits of their accounts, until it is closed. Any number of processes may do so. */
export function openQueryLimits({ account, logger, metrics }: QueryLimitsParts): Closable {
  const stopped = metrics.counter(
    'event_writer_queries_stopped_total',
    'Queries of limited ClickHouse accounts that were stopped: they lifted a limit, or ran too long.',
    ['reason'],
  );
  const send = async (body: string): Promise<string> => {
    // Without log_queries the log of queries would have four rows a second from here.
    const settings = { log_queries: '0' };
    return (await askClickHouse(account, { body, settings, deadlineMs: REQUEST_MAX_MS })).text();
  };
  const check = async (): Promise<void> => {
    const lines = (await send(QUERIES_BEYOND_LIMITS)).split('\n').filter((line) => line !== '');
    const found = lines.map((line) => JSON.parse(line) as [string, string, number, string[]]);
    if (found.length === 0) return;
    const names = found.map(([user, queryId]) => `(${quoteText(user)}, ${quoteText(queryId)})`);
    await send(`KILL QUERY WHERE (user, query_id) IN (${names.join(', ')}) ASYNC FORMAT Null`);
    for (const [user, , elapsedS, lifted] of found) {
      stopped.inc({ reason: lifted.length > 0 ? 'lifted a limit' : 'time' });
      logger.warn({ account: user, elapsedS, lifted }, 'query stopped: it ran beyond the limits of its account');
    }
  };
  let reportedMs = Number.NEGATIVE_INFINITY;
  const report = (error: unknown) => {
    if (performance.now() - reportedMs < REPORT_AGAIN_MS) return;
    reportedMs = performance.now();
    logger.warn(
      { error },
      'running queries cannot be checked: limits of ClickHouse accounts can be lifted until they are',
    );
  };
  let checking = Promise.resolve();
  let timer: NodeJS.Timeout;
  const schedule = () => {
    timer = setTimeout(() => {
      checking = check().catch(report);
      void checking.then(() => !isClosed && schedule());
    }, POLL_MS);
  };
  let isClosed = false;
  schedule();
  return {
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await checking;
    },
  };
}
