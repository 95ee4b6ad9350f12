export * from './stores.ts';
export * from './until.ts';
