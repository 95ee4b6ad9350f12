export * from './memory-analysts.ts';
export * from './memory-records.ts';
export * from './memory-sessions.ts';
export * from './memory-usage.ts';
