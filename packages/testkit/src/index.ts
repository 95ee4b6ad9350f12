export * from './clock/open-wall-clock.ts';
export * from './message-record.ts';
export * from './messages.ts';
export * from './own-stores.ts';
export * from './redis-database.ts';
export * from './stores.ts';
export { testStackFolder } from './stores-local.ts';
export * from './until.ts';
export * from './wire.ts';
