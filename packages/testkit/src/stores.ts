import { inject } from 'vitest';

/** Addresses of the real stores that a test run shares. */
export interface Stores {
  kafka: string[];
  /** With its password: `redis://:password@127.0.0.1:port` */
  redis: string;
  clickhouse: { url: string; user: string; password: string };
  /** Confluent-compatible address of the schema registry, without a trailing slash. */
  registry: string;
}

declare module 'vitest' {
  interface ProvidedContext {
    stores: Stores;
  }
}

/** The stores started by the global set-up. Each test takes its own environment id, topic prefix or database in them. */
export function testStores(): Stores {
  return inject('stores');
}
