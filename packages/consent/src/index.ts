export * from './catch-up.ts';
export * from './rebuild.ts';
export * from './store.ts';
