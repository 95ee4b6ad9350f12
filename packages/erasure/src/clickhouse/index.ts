export type { ClickHouseTarget } from './connection.ts';
export { type ErasureRowsOptions, openErasureRows } from './erasure-rows.ts';
