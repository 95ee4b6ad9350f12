export * from './audit/entries.ts';
export * from './columns.ts';
export * from './cookbook/index.ts';
export * from './record-rows.ts';
export { createRowPlan, type RowPlan } from './row/plan.ts';
export { RowBuffer } from './row/row-buffer.ts';
export { clearAnonymousId, createPartReader } from './row/row-columns.ts';
export { type LogPosition, type RowHead, RowTranscoder } from './row/transcoder.ts';
export * from './store.ts';
