import type { SchemaSource } from '@playline/contracts';
import type { ErasureRecords } from '@playline/erasure';
import type { People } from '@playline/people';
import { type ClickHouseAccount, createQueryRows, type QueryRows } from '@playline/stores';
import type { LogReader } from '@playline/stream';
import { awaitClickHouse, awaitLog, awaitStore, withOpened, withSeveral } from '../await-store.ts';

/** Openers of the stores of a deployment; each throws UnreachableError when its address is not configured. */
export interface StoresContext {
  readonly openPeople: () => Promise<People>;
  readonly openLog: () => Promise<LogReader>;
  readonly openRecords: () => Promise<ErasureRecords>;
  readonly schemaOf: SchemaSource;
  readonly clickhouse: () => ClickHouseAccount;
  /** TOPIC_PREFIX */
  readonly topicPrefix: string;
}

/** Any answer counts: a readiness check would require the epoch, which is still missing. */
const awaitPeople = (people: People) => awaitStore('Redis', async () => (await people.readEpoch()) !== undefined);

/** Opens Redis, waits until it answers, and closes it again. @throws UnreachableError, or what `work` throws */
export async function withPeople<T>(
  { openPeople }: Pick<StoresContext, 'openPeople'>,
  work: (people: People) => Promise<T>,
): Promise<T> {
  return withOpened(await openPeople(), awaitPeople, work);
}

/** Opens all stores, waits until they answer, and closes them again. @throws UnreachableError, or what `work` throws */
export async function withStores<T>(
  context: StoresContext,
  options: Pick<RebuildSources, 'writerGroup' | 'onProgress'>,
  work: (sources: RebuildSources, people: People) => Promise<T>,
): Promise<T> {
  const { schemaOf, topicPrefix } = context;
  const query = createQueryRows(context.clickhouse());
  return withSeveral(async (open) => {
    const log = await open(context.openLog());
    const records = await open(context.openRecords());
    const people = await open(context.openPeople());
    await Promise.all([awaitPeople(people), awaitClickHouse(query), awaitLog(log)]);
    return work({ log, query, records, schemaOf, topicPrefix, ...options }, people);
  });
}

/** What a rebuild reads: the log and the tables. */
export interface RebuildSources {
  readonly log: LogReader;
  readonly query: QueryRows;
  readonly records: Pick<ErasureRecords, 'readFences' | 'readUnfinished' | 'readFinished'>;
  /** Returns the text of a schema. @throws UnknownSchemaFault */
  readonly schemaOf: SchemaSource;
  /** TOPIC_PREFIX */
  readonly topicPrefix: string;
  /** Consumer group of the event writer: everything that it has committed is in the tables. */
  readonly writerGroup: string;
  /** Called with findings, for people. */
  readonly onProgress: (line: string) => void;
}
