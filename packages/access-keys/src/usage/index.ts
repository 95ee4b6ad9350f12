export * from './counter.ts';
export * from './flush.ts';
export * from './key-usage.ts';
