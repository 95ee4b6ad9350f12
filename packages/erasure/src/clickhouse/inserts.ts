import { pauseOrThrow, StoreFault } from '@playline/stores';
import type { Connection } from './connection.ts';

const POLL_MS = 100;
/** The engine ends an insert of a service after a minute (`max_execution_time` of its account). */
const INSERT_MAX_MS = 90_000;

/**
 * Waits for the end of all inserts into this database that are running when it is called. Services share an account, so
 * each sees all inserts. Inserts of erasures are not awaited: they write no row about anybody, and may take minutes.
 */
export async function awaitInserts(connection: Connection, signal?: AbortSignal): Promise<void> {
  const readRunning = async () => {
    const rows = await connection.read<{ id: string }>(
      `SELECT query_id AS id FROM system.processes
       WHERE query_kind = 'Insert' AND current_database = currentDatabase() AND NOT startsWith(query, 'INSERT INTO erasure_')`,
    );
    return rows.map(({ id }) => id);
  };
  const awaited = new Set(await readRunning());
  const end = performance.now() + INSERT_MAX_MS;
  while (awaited.size > 0) {
    if (performance.now() > end) {
      const words = `ClickHouse INSERT_WAIT: an insert runs for more than ${INSERT_MAX_MS} ms`;
      throw new StoreFault(words, { kind: 'passing', code: 'INSERT_WAIT' });
    }
    await pauseOrThrow(POLL_MS, signal);
    const running = await readRunning();
    for (const id of awaited) if (!running.includes(id)) awaited.delete(id);
  }
}
