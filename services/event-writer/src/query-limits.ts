import type { Closable, Logger, Metrics } from '@playline/runtime';
import { type ClickHouseAccount, onEachNode, quoteText, sendStatement } from '@playline/stores';
import { repeat } from './repeat.ts';

/** Short enough that a query without limits cannot fill the server's memory between two checks. */
const POLL_MS = 500;
/** ClickHouse checks the time only between blocks. The grace period lets it report a timeout itself, more clearly. */
const GRACE_S = 2;
const REQUEST_MAX_MS = 5_000;
/** How long account limits are cached. A new account's limits are read when its first query runs. */
const LIMITS_CACHED_MS = 60_000;

/**
 * Selects running queries of other accounts, with the settings that differ from ClickHouse's defaults. Ids are
 * hexadecimal, because a client may choose bytes that are not valid UTF-8. The part of a query on another node of a cluster
 * has other limits, and ends with the query.
 */
const RUNNING = `
SELECT user, hex(query_id), elapsed, mapKeys(Settings) FROM system.processes
WHERE user != currentUser() AND NOT is_cancelled AND is_initial_query FORMAT JSONCompactEachRow`;

/** Selects the settings of the limited profiles in users.xml per account. */
const LIMITS = `
SELECT account.user_name, groupArray(element.setting_name),
  maxIf(toFloat64OrZero(element.value), element.setting_name = 'max_execution_time')
FROM system.settings_profile_elements AS account
INNER JOIN system.settings_profile_elements AS element ON element.profile_name = account.inherit_profile
WHERE account.inherit_profile IN ('analyst', 'portal', 'reader') AND element.value IS NOT NULL
GROUP BY account.user_name FORMAT JSONCompactEachRow`;

type Running = [user: string, queryIdHex: string, elapsedS: number, settings: string[]];
type Limits = [user: string, names: string[], seconds: number];

export interface QueryLimitsOptions {
  readonly account: ClickHouseAccount;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** Until closed, kills queries that exceed their account's limits. Several processes may run this concurrently. */
export function openQueryLimits(options: QueryLimitsOptions): Closable {
  const stopped = options.metrics.counter(
    'playline_event_writer_queries_stopped_total',
    'Queries of limited ClickHouse accounts that were killed because they removed a limit or ran too long.',
    ['reason'],
  );
  const onFault = (error: unknown) =>
    options.logger.warn({ error }, 'cannot check running queries; query limits may not be enforced');
  // A node that does not respond must not delay the checks of others.
  const checks = onEachNode(options.account).map((account) =>
    repeat({ intervalMs: POLL_MS, run: createCheck(account, { ...options, stopped }), onFault }),
  );
  return {
    async close() {
      await Promise.all(checks.map((check) => check.close()));
    },
  };
}

interface CheckOptions extends Pick<QueryLimitsOptions, 'logger'> {
  readonly stopped: ReturnType<Metrics['counter']>;
}

function createCheck(account: ClickHouseAccount, { logger, stopped }: CheckOptions): () => Promise<void> {
  const readLimits = createLimits(account);
  return async () => {
    const running = await readRows<Running>(account, RUNNING);
    if (running.length === 0) return;
    const limits = await readLimits(running.map(([user]) => user));
    const found = running.flatMap(([user, queryIdHex, elapsedS, settings]) => {
      const [, names = [], seconds = 0] = limits.get(user) ?? [];
      // `SETTINGS … = DEFAULT` removes a setting from the query, regardless of constraints.
      const lifted = names.filter((name) => !settings.includes(name));
      const isLate = names.length > 0 && elapsedS > seconds + GRACE_S;
      return lifted.length > 0 || isLate ? [{ user, queryIdHex, elapsedS, lifted }] : [];
    });
    if (found.length === 0) return;
    const names = found.map(({ user, queryIdHex }) => `(${quoteText(user)}, '${queryIdHex}')`);
    await send(account, `KILL QUERY WHERE (user, hex(query_id)) IN (${names.join(', ')}) ASYNC FORMAT Null`);
    for (const { user, elapsedS, lifted } of found) {
      stopped.inc({ reason: lifted.length > 0 ? 'lifted a limit' : 'time' });
      logger.warn({ account: user, elapsedS, lifted }, 'query killed because it exceeded the limits of its account');
    }
  };
}

/** Creates a function that reads and caches account limits, with null for accounts without limits. */
function createLimits(account: ClickHouseAccount) {
  let cache = new Map<string, Limits | null>();
  let readMs = Number.NEGATIVE_INFINITY;
  return async (users: readonly string[]): Promise<ReadonlyMap<string, Limits | null>> => {
    if (performance.now() - readMs < LIMITS_CACHED_MS && users.every((user) => cache.has(user))) return cache;
    const limits = await readRows<Limits>(account, LIMITS);
    cache = new Map(users.map((user) => [user, null]));
    for (const each of limits) cache.set(each[0], each);
    readMs = performance.now();
    return cache;
  };
}

async function readRows<T>(account: ClickHouseAccount, sql: string): Promise<T[]> {
  const text = await send(account, sql);
  return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as T]));
}

async function send(account: ClickHouseAccount, body: string): Promise<string> {
  // These statements would add four rows per second to the query log.
  const settings = { log_queries: '0' };
  return (await sendStatement(account, { body, settings, deadlineMs: REQUEST_MAX_MS })).text();
}
