import { randomUUID } from 'node:crypto';
import {
  createRecordStore,
  RATE_LIMIT_KEYS,
  type RateLimitKeyContext,
  type RateLimitKeyRecord,
  syncFromLog,
} from '@playline/access-keys';
import { openRedisRecords } from '@playline/access-keys/redis';
import { createMemoryRecordLog } from '@playline/access-keys/test';
import type { ActivityRow, TokenRow } from '@playline/chain';
import { openActivityStore } from '@playline/chain/clickhouse';
import { putActivities } from '@playline/chain/memory';
import { openRedisWatermarks } from '@playline/chain/redis';
import { openOwnDatabase, openRedisDatabase, toRedisSettings } from '@playline/testkit';
import { OTHER_PARTITION, PARTITION } from './open-chain-api.ts';

/** A ClickHouse and a Redis database for one test, with the operations of an activity writer. */
export interface ChainStores {
  readonly redisUrl: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Stores rows and publishes the watermark of the last row. */
  put(...rows: readonly ActivityRow[]): Promise<void>;
  putWithoutWatermark(...rows: readonly ActivityRow[]): Promise<void>;
  putTokens(...rows: readonly TokenRow[]): Promise<void>;
  readonly rateLimitKeys: RateLimitKeyContext;
  /** Copies rate limit keys from the log to Redis, as gateways do. */
  syncRateLimitKeys(): Promise<unknown>;
  /** Publishes the watermark of a partition in epoch microseconds. */
  publish(partition: number, us: number): Promise<void>;
  close(): Promise<void>;
}

export async function openChainStores(): Promise<ChainStores> {
  const { target, close: dropDatabase } = await openOwnDatabase();
  const { url, user, password, database } = target;
  const redis = await openRedisDatabase();
  const watermarks = await openRedisWatermarks(redis.target);
  // Simulates a writer that has started but has not written any rows.
  for (const partition of [PARTITION, OTHER_PARTITION]) await watermarks.publish(partition, 0);
  const [view, log] = [
    await openRedisRecords(RATE_LIMIT_KEYS, redis.target),
    createMemoryRecordLog<RateLimitKeyRecord>(),
  ];
  const syncRateLimitKeys = () => syncFromLog({ view, log });
  await syncRateLimitKeys();
  const author = { changedBy: 'test', requestId: 'test' };
  const writer = openActivityStore(target);
  const blockOptions = () => ({ token: randomUUID(), signal: new AbortController().signal });
  const putWithoutWatermark: ChainStores['putWithoutWatermark'] = async (...rows) => {
    await putActivities(writer, rows);
  };
  return {
    redisUrl: redis.url,
    environment: {
      ...toRedisSettings(redis.target),
      CLICKHOUSE_URL: url,
      CLICKHOUSE_USER: user,
      CLICKHOUSE_PASSWORD: password,
      CLICKHOUSE_DATABASE: database,
    },
    rateLimitKeys: { store: createRecordStore({ view, log }, author), prefix: 'svcapik' },
    syncRateLimitKeys,
    putWithoutWatermark,
    put: async (...rows) => {
      await putWithoutWatermark(...rows);
      for (const { partition, updatedAt } of rows) await watermarks.publish(partition, updatedAt);
    },
    putTokens: (...rows) => writer.insert({ table: 'tokens', rows, ...blockOptions() }),
    publish: watermarks.publish,
    close: async () => {
      await writer.close();
      await watermarks.close();
      await view.close();
      await redis.close();
      await dropDatabase();
    },
  };
}
