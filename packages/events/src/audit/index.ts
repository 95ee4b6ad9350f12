export * from './entries.ts';
export * from './rows.ts';
