export * from './columns.ts';
export * from './consents/rows.ts';
export * from './decisions/rows.ts';
export * from './record/index.ts';
export * from './record-rows.ts';
export * from './rejections/rows.ts';
export * from './row/index.ts';
export * from './store.ts';
