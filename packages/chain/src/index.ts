export * from './filters.ts';
export * from './page.ts';
export * from './position.ts';
export * from './rows.ts';
export * from './store.ts';
export * from './texts.ts';
export * from './watermarks.ts';
