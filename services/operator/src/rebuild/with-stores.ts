import type { SchemaSource } from '@playline/contracts';
import type { ErasureRecords } from '@playline/erasure';
import type { People } from '@playline/people';
import { type ClickHouseAccount, createQueryRows, type QueryRows } from '@playline/stores';
import type { LogReader } from '@playline/stream';
import { awaitClickHouse, awaitLog, awaitStore, withOpened, withScope } from '../await-store.ts';

/** Each opener throws UnreachableError when its address is not configured. */
export interface StoresContext {
  readonly openPeople: () => Promise<People>;
  readonly openLog: () => Promise<LogReader>;
  readonly openRecords: () => Promise<ErasureRecords>;
  readonly schemaOf: SchemaSource;
  readonly clickhouse: () => ClickHouseAccount;
  readonly topicPrefix: string;
}

/** Does not use the readiness check, which requires an epoch. */
const awaitPeople = (people: People) => awaitStore('Redis', async () => (await people.readEpoch()) !== undefined);

/** Runs `work` once Redis responds, and then closes the store. @throws UnreachableError */
export async function withPeople<T>(
  { openPeople }: Pick<StoresContext, 'openPeople'>,
  work: (people: People) => Promise<T>,
): Promise<T> {
  return withOpened(await openPeople(), work, awaitPeople);
}

/** Runs `work` once all stores respond, and then closes the stores. @throws UnreachableError */
export async function withStores<T>(
  context: StoresContext,
  options: Pick<RebuildSources, 'writerGroup' | 'onProgress'>,
  work: (sources: RebuildSources, people: People) => Promise<T>,
): Promise<T> {
  const { schemaOf, topicPrefix } = context;
  const query = createQueryRows(context.clickhouse());
  return withScope(async (open) => {
    const log = await open(context.openLog());
    const records = await open(context.openRecords());
    const people = await open(context.openPeople());
    await Promise.all([awaitPeople(people), awaitClickHouse(query), awaitLog(log)]);
    return work({ log, query, records, schemaOf, topicPrefix, ...options }, people);
  });
}

export interface RebuildSources {
  readonly log: LogReader;
  readonly query: QueryRows;
  readonly records: Pick<ErasureRecords, 'readFences' | 'readUnfinished' | 'readFinished'>;
  readonly schemaOf: SchemaSource;
  readonly topicPrefix: string;
  /** Consumer group of the event writer; records before its committed offsets are in the tables. */
  readonly writerGroup: string;
  readonly onProgress: (line: string) => void;
}
