export * from './bare-environment.ts';
export * from './clickhouse-target.ts';
export * from './message-record.ts';
export * from './own-database.ts';
export * from './service-processes.ts';
export { testStackFolder } from './stack-folder.ts';
export * from './stores.ts';
export * from './trace-receiver.ts';
export * from './until.ts';
