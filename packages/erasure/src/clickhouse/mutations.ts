import { pauseOrThrow, StoreFault, toStoreWords } from '@playline/stores';
import type { ClickHouseSettings } from '@playline/stores/clickhouse';
import type { Connection } from './connection.ts';

/** A change of existing rows, which the engine makes in the background. */
export interface Mutation {
  readonly table: string;
  readonly statement: string;
  /** Text of the statement that no other mutation of the table contains, except other attempts at this one. */
  readonly mark: string;
}

export interface MutationWait {
  /** After this long, waiting for one mutation is a fault. The mutation continues, and a repetition finds it. */
  readonly deadlineMs: number;
  /** Ends the wait likewise. */
  readonly signal: AbortSignal | undefined;
}

/** A small mutation takes about 50 ms. A large one is asked for twice a second. */
const POLL_MIN_MS = 20;
const POLL_MAX_MS = 500;

/**
 * Masks deleted rows inside their parts. Patches beside the parts would not all be removed by one APPLY DELETED MASK.
 */
const SUBMIT: ClickHouseSettings = {
  lightweight_delete_mode: 'alter_update',
  lightweight_deletes_sync: '0',
  mutations_sync: '0',
};

interface Unfinished {
  readonly mutation_id: string;
  readonly latest_fail_reason: string;
}

/**
 * Runs a mutation to its end. What an earlier attempt left unfinished ends first, so attempts never pile up; rows that
 * came behind it are the new one's.
 *
 * The statement only notes the mutation and the wait is ours: a connection need not stand for as long as a table takes,
 * and a mutation that fails is taken back. Otherwise the engine would try it for ever, and every later one behind it.
 * @throws StoreFault when it fails, or one that stands before it does; the reason of the signal
 */
export async function runMutation(connection: Connection, mutation: Mutation, wait: MutationWait): Promise<void> {
  await awaitEnd(connection, mutation, wait);
  wait.signal?.throwIfAborted();
  await connection.run(mutation.statement, SUBMIT);
  await awaitEnd(connection, mutation, wait);
}

async function awaitEnd(
  connection: Connection,
  mutation: Mutation,
  { deadlineMs, signal }: MutationWait,
): Promise<void> {
  const end = performance.now() + deadlineMs;
  for (let pauseMs = POLL_MIN_MS; ; pauseMs = Math.min(pauseMs * 2, POLL_MAX_MS)) {
    const unfinished = await readUnfinished(connection, mutation);
    if (unfinished.length === 0) return;
    const failed = unfinished.find(({ latest_fail_reason }) => latest_fail_reason !== '');
    if (failed !== undefined) {
      await takeBack(connection, mutation, unfinished);
      throw faultOf(mutation, toStoreWords(failed.latest_fail_reason), 'MUTATION_FAILED');
    }
    if (performance.now() > end) throw faultOf(mutation, `not done within ${deadlineMs} ms`, 'MUTATION_WAIT');
    await pauseOrThrow(pauseMs, signal);
  }
}

const faultOf = ({ table }: Mutation, words: string, code: string) =>
  new StoreFault(`ClickHouse ${code}: mutation of ${table}: ${words}`, { kind: 'passing', code });

function readUnfinished(connection: Connection, { table, mark }: Mutation): Promise<Unfinished[]> {
  return connection.read<Unfinished>(
    `SELECT mutation_id, latest_fail_reason FROM system.mutations
     WHERE database = currentDatabase() AND table = {table: String} AND NOT is_done AND NOT is_killed
       AND position(command, {mark: String}) > 0`,
    { table, mark },
  );
}

async function takeBack(connection: Connection, { table }: Mutation, unfinished: readonly Unfinished[]): Promise<void> {
  const ids = unfinished.map(({ mutation_id }) => `'${mutation_id}'`).join(', ');
  await connection.run(
    `KILL MUTATION WHERE database = currentDatabase() AND table = '${table}' AND mutation_id IN (${ids})`,
  );
}
