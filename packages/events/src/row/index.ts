export { EVENT_FIELDS, type EventField, UnsupportedSchemaError } from './fields.ts';
export type { RowHead } from './head.ts';
export { createRowPlan, type RowPlan } from './plan.ts';
export { RowBuffer } from './row-buffer.ts';
export { blankAnonymous, createPartReader } from './row-columns.ts';
export { type LogPosition, RowTranscoder } from './transcoder.ts';
