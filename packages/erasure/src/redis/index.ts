export { openRedisErasureHolds, type RedisErasureHoldsOptions } from './holds.ts';
