export type { ClickHouseTarget } from './connection.ts';
export { openErasureRecords } from './erasure-records.ts';
export { type ErasureRowsOptions, openErasureRows } from './erasure-rows.ts';
