export * from './clickhouse-query.ts';
export * from './cluster-check.ts';
export * from './connection-faults.ts';
export * from './explain-fault.ts';
export { toPartition } from './murmur2.ts';
export * from './running-inserts.ts';
export * from './several-nodes.ts';
export * from './store-fault.ts';
export * from './store-fetch.ts';
