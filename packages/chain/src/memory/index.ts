export * from './put-activities.ts';
export * from './store.ts';
export * from './watermarks.ts';
