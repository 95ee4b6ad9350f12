// Complete stacks with one or several processes of each kind, whose CPU time is measured while they receive messages.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type StackFile, startStack } from '@playline/infra/local';
import { Redis } from 'ioredis';
import { nodeName, parseNodeName } from '../../../infra/local/node-names.ts';
import { redisNodeUrls } from '../../../infra/local/redis-cluster.ts';
import { createEngine, waitForMerges } from '../clickhouse.ts';
import { MESSAGES_PATH } from '../load-client.ts';
import type { Posted, Posting } from '../load-process.ts';
import { cpuSecondsOf, runChild, waitFor } from '../processes.ts';
import { FIRST_PARTITION } from '../queries/fill.ts';
import { UNLIMITED } from '../services.ts';

const BATCH = 20;
const ROWS_MAX_MS = 180_000;

/** CPU-seconds by kind of process. Replicas in Redis are a kind of their own. */
export type CpuSeconds = Readonly<Record<string, number>>;
export const REPLICAS = 'replicas in Redis';

export type MeasuredStack = Awaited<ReturnType<typeof openMeasuredStack>>;

/** @param copies replicas of each record in Kafka */
export async function openMeasuredStack({ cluster, copies }: { cluster: boolean; copies: 1 | 3 }) {
  const directory = mkdtempSync(join(tmpdir(), 'playline-bench-'));
  const stack = await startStack({
    directory,
    cluster,
    services: ['gateway', 'identity-linker', 'event-writer'],
    settings: {
      ...UNLIMITED,
      LOG_LEVEL: 'warn',
      ...(copies === 1 && { TOPIC_REPLICATION_FACTOR: '1', TOPIC_MIN_INSYNC_REPLICAS: '1' }),
    },
    isDisposable: true,
  }).catch((error) => {
    rmSync(directory, { recursive: true, force: true });
    throw error;
  });
  const { file } = stack;
  const nodes = file.clickhouse.cluster?.urls ?? [file.clickhouse.url];
  const engines = nodes.map((url) => engineOf(file, { url, database: file.clickhouse.database }));
  let posted = 0;

  /** Posts messages, and waits until each has a row and all merges have ended. */
  const store = async (messages: number, messagesPerSecond?: number): Promise<void> => {
    await post(file, { messages, ...(messagesPerSecond !== undefined && { messagesPerSecond }) });
    posted += messages;
    const stored = async () => {
      const sql = `SELECT count() FROM events WHERE kafka_partition < ${FIRST_PARTITION}`;
      const counts = await Promise.all(engines.map((engine) => engine.queryNumber(sql)));
      return counts.reduce((sum, count) => sum + count);
    };
    await waitFor('every message has a row', async () => (await stored()) >= posted, { maxMs: ROWS_MAX_MS });
    if ((await stored()) !== posted) throw new Error('a message has two rows');
    for (const engine of engines) await waitForMerges(engine, file.clickhouse.database);
  };

  /** Measures the CPU time of all processes during `work`. */
  const watch = async (work: () => Promise<unknown>): Promise<{ cpu: CpuSeconds; seconds: number }> => {
    const { processes } = stack.file;
    const read = () => Object.entries(processes).map(([name, pid]) => ({ name, seconds: cpuSecondsOf(pid) }));
    const [before, startMs] = [read(), performance.now()];
    await work();
    const [after, seconds] = [read(), (performance.now() - startMs) / 1000];
    const replicas = await findReplicas(file.redis);
    if (Object.entries(stack.file.processes).some(([name, pid]) => processes[name] !== pid))
      throw new Error('a process was restarted');
    const cpu: Record<string, number> = {};
    for (const [index, { name, seconds }] of after.entries()) {
      const kind = replicas.has(name) ? REPLICAS : parseNodeName(name).kind;
      cpu[kind] = (cpu[kind] ?? 0) + seconds - before[index]!.seconds;
    }
    return { cpu, seconds };
  };

  const close = async () => {
    await stack.stop();
    rmSync(directory, { recursive: true, force: true });
  };
  return { file, engines, store, watch, close };
}

/** An engine for the tables of one node, or for those of all nodes. */
export const engineOf = (file: StackFile, { url, database }: { url: string; database: string }) =>
  createEngine({ stores: { ...file, clickhouse: { ...file.clickhouse, url } }, database });

/** Posts half of the messages with the key of each environment, through as many gateways as there are. */
async function post(
  { gateway = '', others = {}, keys }: StackFile,
  shape: Pick<Posting, 'messages' | 'messagesPerSecond'>,
) {
  const { messages, messagesPerSecond } = shape;
  const gateways = [gateway, others['gateway-2'] ?? gateway];
  const environments = [keys!.production, keys!.development];
  const posting = gateways.map(async (url, index) => {
    const task: Posting = {
      port: Number(new URL(url).port),
      path: MESSAGES_PATH,
      headers: { 'x-service-publishable-key': environments[index]!.publishable },
      messages: messages / 2,
      batchSize: BATCH,
      ...(messagesPerSecond !== undefined && { messagesPerSecond: messagesPerSecond / 2 }),
    };
    await runChild<Posted>('load-process', { args: [JSON.stringify(task)] });
  });
  await Promise.all(posting);
}

/** @returns the names of the processes that are replicas */
async function findReplicas(redis: string): Promise<ReadonlySet<string>> {
  const names = redisNodeUrls(redis).map(async (url, index) => {
    const node = new Redis(url);
    const info = await node.info('replication');
    node.disconnect();
    return info.includes('role:slave') ? [nodeName('redis', index + 1)] : [];
  });
  return new Set((await Promise.all(names)).flat());
}

export const sumOf = (cpu: CpuSeconds, kinds: readonly string[]): number =>
  kinds.reduce((sum, kind) => sum + (cpu[kind] ?? 0), 0);

/** CPU time per second of a stack that receives nothing. */
export async function measureIdle(stack: MeasuredStack, seconds: number): Promise<CpuSeconds> {
  const idle = await stack.watch(() => delay(seconds * 1000));
  return mapCpu(idle.cpu, (value) => value / idle.seconds);
}

export const mapCpu = (cpu: CpuSeconds, map: (value: number, kind: string) => number): CpuSeconds =>
  Object.fromEntries(Object.entries(cpu).map(([kind, value]) => [kind, map(value, kind)]));
