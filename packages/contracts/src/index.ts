export * from './batch.ts';
export * from './enumerations.ts';
export * from './limits.ts';
export * from './message.ts';
export * from './records.ts';
export * from './rejection.ts';
export * from './timestamp.ts';
export * from './topics.ts';
