import { StoreFault } from './store-fault.ts';
import { pauseOrThrow } from './store-fetch.ts';

/**
 * Condition on `system.processes` for inserts into the database of the account. In a cluster, writers insert into another
 * database, and a shard executes its part of an insert without one.
 */
export const IS_INSERT =
  "query_kind = 'Insert' AND (current_database IN (currentDatabase(), concat(currentDatabase(), '_all')) OR NOT is_initial_query)";

const POLL_MS = 100;
/** Inserts by services time out after a minute (`max_execution_time` of their accounts). */
const INSERT_MAX_MS = 90_000;

/**
 * Waits for the inserts that are running at the first call of `readIds`.
 * @throws StoreFault if one of them does not end; the signal's reason if it is aborted
 */
export async function awaitInserts(readIds: () => Promise<readonly string[]>, signal?: AbortSignal): Promise<void> {
  const awaited = new Set(await readIds());
  const end = performance.now() + INSERT_MAX_MS;
  while (awaited.size > 0) {
    if (performance.now() > end) {
      const message = `ClickHouse INSERT_WAIT: an insert has been running for more than ${INSERT_MAX_MS} ms`;
      throw new StoreFault(message, { kind: 'transient', code: 'INSERT_WAIT' });
    }
    await pauseOrThrow(POLL_MS, signal);
    const running = await readIds();
    for (const id of awaited) if (!running.includes(id)) awaited.delete(id);
  }
}
