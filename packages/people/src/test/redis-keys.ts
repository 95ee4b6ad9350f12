import type { Redis } from 'ioredis';

/** Bucket as the identity graph counts it. */
export function bucketNumber(key: Buffer): number {
  return Math.floor(key.readUInt16BE(0) / 4);
}

export async function deleteKeys(redis: Redis, prefix: string): Promise<void> {
  for await (const names of redis.scanBufferStream({ match: `${prefix}*`, count: 1_000 }))
    if ((names as Buffer[]).length > 0) await redis.unlink(...(names as Buffer[]));
}
