import { inject } from 'vitest';
import type { DatabaseTarget } from './clickhouse-target.ts';

export interface Stores {
  kafka: string[];
  /** `redis://:password@127.0.0.1:port` */
  redis: string;
  clickhouse: { url: string; user: string; password: string };
  /** Confluent-compatible URL without a trailing slash. */
  registry: string;
}

export interface TestStores extends Stores {
  portalPassword: string;
  /** Password of the ClickHouse account `views`, which dictionaries use. */
  viewsPassword: string;
}

declare module 'vitest' {
  interface ProvidedContext {
    stores: TestStores;
    tableTemplate: DatabaseTarget;
  }
}

/** Returns the stores of the test run. Each test must use a separate environment id, topic prefix or database. */
export function testStores(): TestStores {
  return inject('stores');
}

/** Returns the template database, which tests copy but must not change. Null outside a test run. */
export function tableTemplate(): DatabaseTarget | null {
  return process.env.VITEST === undefined ? null : inject('tableTemplate');
}
