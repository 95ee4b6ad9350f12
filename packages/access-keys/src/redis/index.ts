export { type RedisAccessOptions, RedisSharing } from './connection.ts';
export * from './records.ts';
export * from './sessions.ts';
export * from './usage.ts';
