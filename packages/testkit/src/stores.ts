import { inject } from 'vitest';
import type { DatabaseTarget } from './clickhouse-target.ts';

export interface Stores {
  kafka: string[];
  /** `redis://:password@127.0.0.1:port` */
  redis: string;
  clickhouse: { url: string; user: string; password: string };
  /** Confluent-compatible address, without a trailing slash. */
  registry: string;
}

export interface TestStores extends Stores {
  portalPassword: string;
  /** Password of the ClickHouse account `views`, with which dictionaries log in. */
  viewsPassword: string;
}

declare module 'vitest' {
  interface ProvidedContext {
    stores: TestStores;
    tableTemplate: DatabaseTarget;
  }
}

/** The stores of the test run. Each test uses its own environment id, topic prefix or database. */
export function testStores(): TestStores {
  return inject('stores');
}

/** A template database with every table, which tests copy and never change. Null outside a test run. */
export function tableTemplate(): DatabaseTarget | null {
  return process.env.VITEST === undefined ? null : inject('tableTemplate');
}
