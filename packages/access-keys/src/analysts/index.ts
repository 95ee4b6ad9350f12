export * from './accounts.ts';
export * from './assign.ts';
export * from './credentials.ts';
