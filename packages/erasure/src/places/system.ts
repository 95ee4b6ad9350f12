import type { Place } from './place.ts';
import { expiring, without } from './words.ts';

const HOUR_MS = 60 * 60 * 1000;
/** As infra/clickhouse/system-logs.xml says: as long as the log itself, for whoever looks for a cause. */
const SYSTEM_LOG_WINDOW_MS = 78 * HOUR_MS;

const forAWhile = expiring(SYSTEM_LOG_WINDOW_MS);
const inMemory = (name: string, reason: string): Place => ({
  name,
  clearing: { by: 'kept', reason: `in memory, gone with the process or pushed out: ${reason}` },
});

const QUESTIONS = 'what services ask names keys in its text; what people ask may name anything';

/**
 * Tables of the engine itself that keep texts of queries, or words of errors that may quote a row. Erasures name nobody
 * in a statement: their lists stand in a table.
 */
export const SYSTEM_PLACES: readonly Place[] = [
  forAWhile('query_log', QUESTIONS),
  forAWhile('part_log', 'names of parts; words of errors'),
  inMemory('errors', 'the last words of each error'),
  inMemory('warnings', 'what is wrong with the server'),
  inMemory('processes', QUESTIONS),
  inMemory('query_cache', 'answers, for a minute, for whoever asks for it'),
  inMemory('asynchronous_inserts', 'statements of inserts that are queued: ours never are'),
  inMemory('distributed_ddl_queue', 'statements that make and change tables'),
  {
    name: 'mutations',
    clearing: { by: 'kept', reason: 'statements of ours, which name batches; the last hundred of a table' },
  },
  without('projections', 'queries of tables, of ours'),
  without('dashboards', 'queries that come with the engine'),
];
