import { inject } from 'vitest';
import type { DatabaseTarget } from './clickhouse-target.ts';

/** Addresses of stores. */
export interface Stores {
  kafka: string[];
  /** `redis://:password@127.0.0.1:port` */
  redis: string;
  clickhouse: { url: string; user: string; password: string };
  /** Confluent-compatible address, without a trailing slash. */
  registry: string;
}

/** Stores that a test run shares. */
export interface TestStores extends Stores {
  /** Of the ClickHouse account `portal`. */
  portalPassword: string;
  /** Of the ClickHouse account `views`, with which dictionaries log in. */
  viewsPassword: string;
}

declare module 'vitest' {
  interface ProvidedContext {
    stores: TestStores;
    tableTemplate: DatabaseTarget;
  }
}

/** The stores of the run. Each test uses its own environment id, topic prefix or database. */
export function testStores(): TestStores {
  return inject('stores');
}

/** A database with every table, which tests copy and never change. Null outside a test run. */
export function tableTemplate(): DatabaseTarget | null {
  return process.env.VITEST === undefined ? null : inject('tableTemplate');
}
