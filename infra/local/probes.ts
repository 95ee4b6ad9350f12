import { readFileSync } from 'node:fs';
import { askClickHouse, createStoreFetch } from '@playline/stores';
import { Kafka, logLevel } from 'kafkajs';
import { mendKafkaTimer } from '../kafka/timer.ts';
import { assertChain } from './chain.ts';
import { askDegraded } from './http-probe.ts';
import { acceptsRecords } from './kafka.ts';
import { askRedis } from './redis.ts';
import { SERVICES, type ServiceEntry } from './services.ts';
import type { StackFile } from './stack-file.ts';

/** Time-out of a request while an operator waits. Longer than a slow answer, but still tolerable. */
const ANSWER_MS = 5_000;

/** Current state of a process. */
export interface Found {
  /** Null when it serves. */
  readonly fault: string | null;
  /** What it cannot do although it serves; null when it can do everything. */
  readonly degraded: string | null;
}

const SERVES: Found = { fault: null, degraded: null };

async function askRegistry(url: string): Promise<void> {
  const answer = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`it answers with status ${answer.status}: ${text.slice(0, 200).trimEnd()}`);
}

async function askEngine({ clickhouse }: StackFile, ca: string | null): Promise<void> {
  const ask = createStoreFetch(ca === null ? {} : { tls: { ca } });
  // Database `default`, because a ClickHouse without our tables should still count as answering.
  const account = { ...clickhouse, database: 'default', fetch: ask };
  await (await askClickHouse(account, { body: 'SELECT 1', deadlineMs: ANSWER_MS })).text();
}

/** Sends a store a request with its clients' login, because an open port proves little. */
async function askStore(name: string, file: StackFile): Promise<Found> {
  const caFile = file.security?.caFile;
  const ca = caFile === undefined ? null : readFileSync(caFile, 'utf8');
  if (name === 'redis') return { fault: null, degraded: await askRedis(file.redis, ca) };
  if (name === 'clickhouse') await askEngine(file, ca);
  else if (name === 'registry') await askRegistry(`${file.registry}/subjects`);
  else if (name === 'chain' && file.chain !== undefined) await assertChain(file.chain.rpc);
  else if (name === 'kafka') await acceptsRecords(file.kafka[0] ?? '');
  return SERVES;
}

/** Checks whether one process of the stack that people start serves. @throws Error with the reason when it does not */
export async function probe(name: string, file: StackFile): Promise<Found> {
  const admin = file.admin?.[name];
  return admin === undefined ? askStore(name, file) : { fault: null, degraded: await askDegraded(admin) };
}

/**
 * Number of records that the consumer group of each reading service has not committed, by the service's name. Read from
 * Kafka itself, because the lag matters most when a service does not answer. A partition without a commit counts as a
 * whole.
 */
export async function askLag(file: StackFile): Promise<Map<string, number>> {
  mendKafkaTimer();
  const client = new Kafka({
    clientId: 'playline-status',
    brokers: [...file.kafka],
    logLevel: logLevel.NOTHING,
    connectionTimeout: 1000,
    requestTimeout: ANSWER_MS,
    // The first request to a coordinator may find no connection yet.
    retry: { retries: 3, initialRetryTime: 50 },
  });
  const admin = client.admin();
  try {
    await admin.connect();
    const lags = new Map<string, number>();
    const groups = (SERVICES as readonly ServiceEntry[]).flatMap(({ name, reads = [], audits = [] }) => [
      { name, groupId: name, reads },
      { name, groupId: `${name}-audit`, reads: audits },
    ]);
    for (const { name, groupId, reads } of groups) {
      const topics = reads.map((topic) => (file.settings?.TOPIC_PREFIX ?? '') + topic.name);
      if (topics.length === 0) continue;
      const committed = await admin.fetchOffsets({ groupId, topics });
      const ends = await Promise.all(topics.map((topic) => admin.fetchTopicOffsets(topic)));
      lags.set(name, (lags.get(name) ?? 0) + sumLag(topics, { committed, ends }));
    }
    return lags;
  } finally {
    await admin.disconnect().catch(() => {});
  }
}

type Committed = { topic: string; partitions: { partition: number; offset: string }[] }[];
type Ends = { partition: number; low: string; high: string }[][];

function sumLag(topics: readonly string[], { committed, ends }: { committed: Committed; ends: Ends }): number {
  let lag = 0;
  for (const [at, topic] of topics.entries()) {
    const partitions = committed.find((each) => each.topic === topic)?.partitions ?? [];
    for (const { partition, low, high } of ends[at] ?? []) {
      const offset = Number(partitions.find((each) => each.partition === partition)?.offset ?? -1);
      lag += Math.max(0, Number(high) - (offset < 0 ? Number(low) : offset));
    }
  }
  return lag;
}
