import { randomUUID } from 'node:crypto';
import { openTestRedis, testRedis } from '@playline/testkit';
import type { Redis } from 'ioredis';
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
  const root = `test-${randomUUID()}:`;
  const { client: redis, deleteKeys, close } = openTestRedis();
  const opened: People[] = [];
  const clear = (namespace: string) => deleteKeys(`${namespace}*`);
  return {
    redis,
    clear,
    async open(options = {}) {
      const namespace = options.namespace ?? `${root}${opened.length}:`;
      const people = await openRedisPeople({ ...options, ...testRedis(), namespace });
      opened.push(people);
      return { people, namespace };
    },
    async close() {
      await Promise.all(opened.map((people) => people.close()));
      await clear(root);
      close();
    },
  };
}
