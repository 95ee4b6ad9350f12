export * from './enumerations.ts';
export * from './limits.ts';
export * from './records.ts';
export * from './topics.ts';
