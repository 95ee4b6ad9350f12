import { randomUUID } from 'node:crypto';
import { testStores } from '@playline/testkit';
import { Redis } from 'ioredis';
import type { People } from '../people.ts';
import { openRedisPeople, type RedisPeopleOptions } from '../redis/index.ts';

/** People in Redis, in a separate namespace for a test file. */
export interface TestPeople {
  /** For changes that a test makes directly. */
  readonly redis: Redis;
  /** Uses a new namespace unless one is given. */
  open(options?: Omit<RedisPeopleOptions, 'url'>): Promise<{ people: People; namespace: string }>;
  clear(namespace: string): Promise<void>;
  /** Closes all opened stores and removes their keys. */
  close(): Promise<void>;
}

export function openTestPeople(): TestPeople {
  const url = testStores().redis;
  const root = `test-${randomUUID()}:`;
  const redis = new Redis(url);
  const opened: People[] = [];
  const clear = async (namespace: string) => {
    for await (const names of redis.scanBufferStream({ match: `${namespace}*`, count: 1_000 }))
      if ((names as Buffer[]).length > 0) await redis.unlink(...(names as Buffer[]));
  };
  return {
    redis,
    clear,
    async open(options = {}) {
      const namespace = options.namespace ?? `${root}${opened.length}:`;
      const people = await openRedisPeople({ ...options, url, namespace });
      opened.push(people);
      return { people, namespace };
    },
    async close() {
      await Promise.all(opened.map((people) => people.close()));
      await clear(root);
      redis.disconnect();
    },
  };
}
