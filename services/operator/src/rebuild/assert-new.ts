/** Asserts that a deployment without an epoch is new, and has not lost its Redis. */
import { TOPICS } from '@playline/contracts';
import { createQueryRows, readRows } from '@playline/stores';
import { awaitClickHouse, awaitStore, withLog } from '../await-store.ts';
import { EmptiedError, UnreachableError } from '../command.ts';
import type { StoresContext } from './with-stores.ts';

/** Their records would contradict an empty Redis. The end of a topic never moves back. */
const WITNESS_TOPICS = [TOPICS.identityDecisions, TOPICS.consents, TOPICS.erasures];
const WITNESS_TABLES = ['identity_overrides', 'consent_log'];

type Context = Pick<StoresContext, 'openLog' | 'clickhouse' | 'topicPrefix'>;

/**
 * Asserts that there was never a link, a consent or an erasure: an epoch for an empty graph would separate all persons.
 * @throws EmptiedError for a deployment with data; UnreachableError
 */
export async function assertNew(context: Context): Promise<void> {
  const found = [...(await findRecords(context)), ...(await findRows(context))];
  if (found.length === 0) return;
  throw new EmptiedError(
    `${found.join(', ')} have data, so this Redis is not new but has lost its data: run npm run rebuild`,
  );
}

async function findRecords({ openLog, topicPrefix }: Context): Promise<string[]> {
  const log = await nullIfUnreachable(openLog);
  if (log === null) return [];
  return withLog(log, async () => {
    const names = WITNESS_TOPICS.map(({ name }) => topicPrefix + name);
    // Leaders of new topics refuse requests until they have created their logs, for up to 1.9 s.
    const bounds = await awaitStore('Kafka', () => Promise.all(names.map((name) => log.bounds(name))));
    return names.filter((_, at) => bounds[at]!.some(({ end }) => end > 0));
  });
}

async function findRows({ clickhouse }: Context): Promise<string[]> {
  const account = await nullIfUnreachable(clickhouse);
  if (account === null) return [];
  // A database that every account has, since the deployment's own may not exist yet.
  const query = createQueryRows({ ...account, database: 'system' });
  await awaitClickHouse(query);
  const names = WITNESS_TABLES.map((name) => `'${name}'`).join();
  const rows = await readRows(
    query(`SELECT name FROM system.tables WHERE database = '${account.database.replaceAll("'", "''")}'
      AND name IN (${names}) AND total_rows > 0 ORDER BY name`),
  );
  return rows.map(([name]) => String(name));
}

async function nullIfUnreachable<T>(find: () => T | Promise<T>): Promise<T | null> {
  try {
    return await find();
  } catch (fault) {
    if (fault instanceof UnreachableError) return null;
    throw fault;
  }
}
