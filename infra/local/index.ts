export { type Authority, type CertificateFiles, createAuthority } from './certificates.ts';
export { sweepStacks } from './children.ts';
export { acceptsRecords } from './kafka.ts';
export { setScramPassword } from './kafka-security.ts';
export type { ProcessExit } from './keeper.ts';
export { findMissingParts, installCommand } from './machine.ts';
export { CHECKOUT, type StackPaths, stackPathsOf } from './paths.ts';
export { claimPorts, freePorts } from './ports.ts';
export {
  joinRedisCluster,
  REDIS_CLUSTER_NODES,
  type RedisClusterNodes,
  redisClusterAddress,
  redisClusterSpecs,
} from './redis-cluster.ts';
export { verifyRoundTrip } from './round-trip.ts';
export { loadSecrets } from './secrets.ts';
export { createStackFetch, securitySettings } from './security.ts';
export { nodeOptionsOf, SERVICES, type ServiceEntry, type ServiceName } from './services.ts';
export { startStack } from './stack.ts';
export { type KeyPair, readStackFile, type StackFile } from './stack-file.ts';
export type { Stack, StackOptions } from './stack-options.ts';
