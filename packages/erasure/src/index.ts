export * from './fence-set.ts';
export * from './places/place.ts';
export * from './places/redis.ts';
export * from './places/system.ts';
export * from './places/tables.ts';
export * from './places/topics.ts';
export * from './records.ts';
export * from './rows.ts';
