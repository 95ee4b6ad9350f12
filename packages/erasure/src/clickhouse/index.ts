export { openErasureRecords } from './erasure-records.ts';
export { type ErasureRowsOptions, openErasureRows } from './erasure-rows.ts';
