import { randomUUID } from 'node:crypto';
import { testStores } from '@playline/testkit';
import { Redis } from 'ioredis';
import type { People } from '../people.ts';
import { openRedisPeople, type RedisPeopleOptions } from '../redis/index.ts';

/** Redis people stores in a namespace per test file. */
export interface TestPeople {
  readonly redis: Redis;
  /** Opens a store, by default in a new namespace. */
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
