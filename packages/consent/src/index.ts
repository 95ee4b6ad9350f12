export * from './rebuild.ts';
export * from './store.ts';
