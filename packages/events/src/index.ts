export * from './audit/entries.ts';
export * from './columns.ts';
export * from './consents/rows.ts';
export * from './cookbook/index.ts';
export * from './decisions/rows.ts';
export * from './record-rows.ts';
export * from './row/index.ts';
export * from './store.ts';
