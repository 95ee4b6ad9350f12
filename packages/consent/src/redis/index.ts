export { openRedisConsentStore, type RedisConsentStoreOptions } from './store.ts';
