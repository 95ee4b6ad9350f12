/** 16,384 buckets, as the identity graph has: a bucket stays a listpack up to some millions of consents. */
const BUCKET_BITS = 14;

/** Names of what the store reads and writes. */
export function createLayout(namespace: string, topic: string) {
  const nameIn = (family: string, environmentId: string, key: Buffer) =>
    `${namespace}${family}:{${environmentId}}:${key.readUInt16BE(0) >> (16 - BUCKET_BITS)}`;
  return {
    /** STRING of the identity graph: one epoch guards all that stands in this Redis. */
    epoch: `${namespace}identity:epoch`,
    /** HASH 'run' -> run of Redis in which all of the log was here, partition -> greatest offset applied since. */
    log: `${namespace}c:log:${topic}`,
    /** HASH identity key -> status, partition, offset, logged at. */
    consentsOf: (environmentId: string, key: Buffer) => nameIn('c', environmentId, key),
    /** HASH of the identity graph: identity key -> cut-off in ms, as text. */
    fencesOf: (environmentId: string, key: Buffer) => nameIn('f', environmentId, key),
  } as const;
}
