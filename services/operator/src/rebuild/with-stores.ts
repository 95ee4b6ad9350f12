import type { SchemaSource } from '@playline/contracts';
import type { ConsentStore, ErasureHolds, IdentityGraph } from '@playline/people';
import type { LogReader } from '@playline/stream';
import { awaitStore } from '../await-store.ts';
import { type ClickHouseAccount, createQueryRows, readRows } from '../clickhouse-query.ts';
import type { RebuildSources, RebuildTargets } from './stores.ts';

/** How the stores of a deployment are opened; each throws UnreachableError when nobody has told its address. */
export interface StoresContext {
  readonly openGraph: () => Promise<IdentityGraph>;
  readonly openConsents: () => Promise<ConsentStore>;
  readonly openHolds: () => Promise<ErasureHolds>;
  readonly openLog: () => LogReader;
  readonly schemaOf: SchemaSource;
  readonly clickhouse: () => ClickHouseAccount;
  /** TOPIC_PREFIX */
  readonly topicPrefix: string;
}

/** Any answer will do: readiness would ask for the epoch, which is what is missing. */
export const answers = async (graph: Pick<IdentityGraph, 'readEpoch'>): Promise<boolean> =>
  (await graph.readEpoch()) !== undefined;

/** Opens everything, waits until it answers, and closes it again. @throws UnreachableError, or what `work` throws */
export async function withStores<T>(
  context: StoresContext,
  options: Pick<RebuildSources, 'writerGroup' | 'onProgress'>,
  work: (sources: RebuildSources, targets: RebuildTargets) => Promise<T>,
): Promise<T> {
  const { schemaOf, topicPrefix } = context;
  const query = createQueryRows(context.clickhouse());
  const log = context.openLog();
  const opened: { close(): Promise<void> }[] = [log];
  const use = async <S extends { close(): Promise<void> }>(open: () => Promise<S>): Promise<S> => {
    const store = await open();
    opened.push(store);
    return store;
  };
  try {
    const graph = await use(context.openGraph);
    const targets = { graph, consents: await use(context.openConsents), holds: await use(context.openHolds) };
    await Promise.all([
      awaitStore('Redis', () => answers(graph)),
      awaitStore('ClickHouse', async () => (await readRows(query('SELECT 1'))).length === 1),
      awaitStore('Kafka', async () => (await log.bounds('')).length === 0),
    ]);
    return await work({ log, query, schemaOf, topicPrefix, ...options }, targets);
  } finally {
    await Promise.all(opened.map((store) => store.close()));
  }
}
