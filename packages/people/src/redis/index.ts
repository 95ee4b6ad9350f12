export { openRedisConsentStore, type RedisConsentStoreOptions } from './consents.ts';
export { openRedisIdentityGraph, type RedisIdentityGraphOptions } from './graph.ts';
export { openRedisErasureHolds, type RedisErasureHoldsOptions } from './holds.ts';
