import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ActivityRow, ActivityStore, ChainTable, TokenRow, Watermarks } from '@playline/chain';
import { createMemoryChain, openMemoryWatermarks } from '@playline/chain/memory';
import { activityCodec, TICK_HEADER, TOPICS, tokenCodec } from '@playline/contracts';
import { createMetrics } from '@playline/runtime';
import { StoreFault } from '@playline/stores';
import { toPartition } from '@playline/stream';
import { createMemoryLog, type MemoryConsumer } from '@playline/stream/memory';
import { createPipeline } from '../pipeline.ts';

export const ACTIVITIES: string = TOPICS.activities.name;
export const TOKENS: string = TOPICS.tokens.name;
export const ACTIVITY_SCHEMA = 1;
export const TOKEN_SCHEMA = 2;
/** The same schema with another ID, as if registered for another topic. */
export const SECOND_ACTIVITY_SCHEMA = 3;
const SCHEMAS = new Map([
  [ACTIVITY_SCHEMA, activityCodec.schema],
  [TOKEN_SCHEMA, tokenCodec.schema],
  [SECOND_ACTIVITY_SCHEMA, activityCodec.schema],
]);
const PARTITIONS = 2;
const waits = { attempt: { minMs: 0, maxMs: 0 }, pause: { minMs: 0, maxMs: 0 } };

export const partitionOf = (chain: string): number => toPartition(Buffer.from(chain), PARTITIONS);

/** Delays the stores' responses by event loop turns, so that a writer can be killed at each of its steps. */
function addDelay(activities: ActivityStore, watermarks: Watermarks): { store: ActivityStore; watermarks: Watermarks } {
  const delay =
    <A extends unknown[], R>(work: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      await nextTurn();
      const result = await work(...args);
      await nextTurn();
      return result;
    };
  return {
    store: { ...activities, insert: delay(activities.insert), storedOffsets: delay(activities.storedOffsets) },
    watermarks: { ...watermarks, publish: delay((partition, us) => watermarks.publish(partition, us)) },
  };
}

function createRefusing(activities: ActivityStore) {
  const refused = { table: null as ChainTable | null, times: 0 };
  const insert: ActivityStore['insert'] = async (block) => {
    if (block.table !== refused.table) return activities.insert(block);
    refused.times++;
    throw new StoreFault('busy', { kind: 'transient', code: 'BUSY' });
  };
  return { refused, insert };
}

const rowsOf = <R>({ blocks }: ReturnType<typeof createMemoryChain>, table: string) =>
  blocks.flatMap((block) => (block.table === table ? (block.rows as readonly unknown[] as R[]) : []));

/** Creates an in-memory log, registry, store and watermarks, and opens writers that share them. */
export function createMemoryWorld() {
  const store = createMemoryChain();
  const log = createMemoryLog({ partitions: PARTITIONS });
  const producer = log.openProducer();
  const watermarks = openMemoryWatermarks();
  const calls = { onPublished: () => {} };
  const published: Watermarks = {
    ...watermarks,
    publish: async (partition, us) => {
      await watermarks.publish(partition, us);
      calls.onPublished();
    },
  };
  const registry = { isDown: false, requests: 0, forgotten: new Set<number>() };
  const schemaOf = async (id: number) => {
    registry.requests++;
    if (registry.isDown) throw new Error('down');
    return registry.forgotten.has(id) ? null : (SCHEMAS.get(id) ?? null);
  };
  const { refused, insert } = createRefusing(store.activities);
  const open = (rowsMax = 100): MemoryConsumer => {
    const { topics, sink } = createPipeline({
      ...addDelay({ ...store.activities, insert }, published),
      mints: { insert: async () => {} },
      schemaOf,
      deadLetters: producer,
      onRecordRead: () => {},
      onMint: () => {},
      topicPrefix: '',
      partitionOf: async (chain: string) => partitionOf(chain),
      metrics: createMetrics('test'),
    });
    return log.openBlockConsumer({ topics, sink, limits: { rowsMax, bytesMax: 1_000_000, ageMaxMs: 1 }, waits });
  };
  return {
    log,
    producer,
    watermarks,
    registry,
    store,
    refused,
    open,
    calls,
    send: (topic: string, chain: string, value: Buffer) =>
      producer.sendForOffset({ topic, key: Buffer.from(chain), value }),
    tick: (partition: number) =>
      producer.sendForOffset({ topic: ACTIVITIES, partition, key: null, value: null, headers: { [TICK_HEADER]: '' } }),
    write: async () => {
      const consumer = open();
      await consumer.idle();
      await consumer.close();
    },
    activities: () => rowsOf<ActivityRow>(store, 'activities'),
    tokens: () => rowsOf<TokenRow>(store, 'tokens'),
    deadLetters: (topic: string) => log.records(`${topic}.dead`).map(({ headers }) => String(headers.reason)),
  };
}

export type MemoryWorld = ReturnType<typeof createMemoryWorld>;
