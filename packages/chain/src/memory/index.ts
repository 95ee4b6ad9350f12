export * from './store.ts';
export * from './watermarks.ts';
