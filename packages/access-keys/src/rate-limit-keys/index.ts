export * from './finder.ts';
export * from './operations.ts';
export * from './rate-limit-key.ts';
