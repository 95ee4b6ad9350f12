export * from './records.ts';
export * from './rows.ts';
