import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
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
const CLAIM = 'test:claim';
/** Longer than any test run; a run that was killed does not keep the database for ever. */
const CLAIM_MS = 3_600_000;

/** @param redis with its password; the one of the test run unless told otherwise @throws Error when every database is somebody's */
export async function openRedisDatabase(redis: string = testStores().redis): Promise<RedisDatabase> {
  for (let number = DATABASES - 1; number > 0; number--) {
    const url = new URL(redis);
    url.pathname = `/${number}`;
    const client = new Redis(url.href);
    const mine = (await client.set(CLAIM, randomUUID(), 'PX', CLAIM_MS, 'NX')) === 'OK';
    if (mine && (await client.dbsize()) === 1) {
      const close = async () => {
        await client.flushdb();
        client.disconnect();
      };
      return { url: url.href, client, close };
    }
    if (mine) await client.del(CLAIM);
    client.disconnect();
  }
  throw new Error('no numbered database of the test Redis is empty');
}
