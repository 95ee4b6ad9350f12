import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { testStores } from './stores.ts';

/** A numbered database of the shared Redis that was empty, for tests of what is done to a whole database. */
export interface RedisDatabase {
  /** With its password and number. */
  readonly url: string;
  readonly client: Redis;
  /** Empties the database and gives it back. */
  close(): Promise<void>;
}

/** As many as a Redis has unless it is told otherwise; the first belongs to everybody. */
const DATABASES = 16;
/** Longer than any test run; a run that was killed does not keep the database for ever. */
const CLAIM_MS = 3_600_000;
/** Claims are in the first database: tests empty their own, and would lose a claim in it. */
const toClaim = (number: number) => `test:database:${number}`;

/** @param redis with its password; the one of the test run unless told otherwise @throws Error when every database is somebody's */
export async function openRedisDatabase(redis: string = testStores().redis): Promise<RedisDatabase> {
  // Loaded only where it is needed: a client of a store takes long to load.
  const { Redis: Client } = await import('ioredis');
  const shared = new Client(redis);
  for (let number = DATABASES - 1; number > 0; number--) {
    if ((await shared.set(toClaim(number), randomUUID(), 'PX', CLAIM_MS, 'NX')) !== 'OK') continue;
    const url = new URL(redis);
    url.pathname = `/${number}`;
    const client = new Client(url.href);
    if ((await client.dbsize()) === 0) {
      const close = async () => {
        await client.flushdb();
        await shared.del(toClaim(number));
        client.disconnect();
        shared.disconnect();
      };
      return { url: url.href, client, close };
    }
    await shared.del(toClaim(number));
    client.disconnect();
  }
  shared.disconnect();
  throw new Error('no numbered database of the test Redis is empty');
}
