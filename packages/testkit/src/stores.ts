import { inject } from 'vitest';
import type { DatabaseTarget } from './clickhouse-target.ts';

/** Addresses of real stores. */
export interface Stores {
  kafka: string[];
  /** With its password: `redis://:password@127.0.0.1:port` */
  redis: string;
  clickhouse: { url: string; user: string; password: string };
  /** Confluent-compatible address of the schema registry, without a trailing slash. */
  registry: string;
}

/** The stores that a test run shares. */
export interface TestStores extends Stores {
  /** Of ClickHouse's account `portal`, which may read some views of the database `playline`. */
  portalPassword: string;
  /** Of ClickHouse's account `views`, which ClickHouse itself knows in plain text, because its dictionary logs in by it. */
  viewsPassword: string;
}

declare module 'vitest' {
  interface ProvidedContext {
    stores: TestStores;
    tableTemplate: DatabaseTarget;
  }
}

/** The stores started by the global set-up. Each test takes its own environment id, topic prefix or database in them. */
export function testStores(): TestStores {
  return inject('stores');
}

/**
 * A database with every table in the ClickHouse of the test run. Tests copy it and never change it. Null in a program that
 * is no test run, such as `npm run faults`.
 */
export function tableTemplate(): DatabaseTarget | null {
  return process.env.VITEST === undefined ? null : inject('tableTemplate');
}
