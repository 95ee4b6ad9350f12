export * from './collection.ts';
export * from './operations.ts';
