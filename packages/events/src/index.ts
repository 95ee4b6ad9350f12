export * from './columns.ts';
export * from './decisions/rows.ts';
export * from './record/index.ts';
export * from './row/index.ts';
export * from './store.ts';
