import { IDENTITY_KEY_BYTES } from '../identities/keyer.ts';

/**
 * 16,384 buckets: about 64 identities in each at a million linked identities of one environment, so that a bucket
 * stays a listpack (`infra/redis/README.md` sets the bound). It never changes: keys stand where they were put.
 */
const BUCKET_BITS = 14;

/** Bucket of an identity key: its first 14 bits. The scripts compute the same. */
export function bucketOf(key: Buffer): number {
  return key.readUInt16BE(0) >> (16 - BUCKET_BITS);
}

/** Names of everything the graph keeps; `infra/redis/README.md` has them in one table. */
export function createLayout(namespace: string, linkTopic: string) {
  const name = (family: string, environmentId: string) => `${namespace}${family}:{${environmentId}}`;
  return {
    /** STRING: guards against an empty or half rebuilt graph. */
    epoch: `${namespace}identity:epoch`,
    /** HASH generation/partition -> last applied offset of the link topic. */
    progress: `${namespace}identity:applied:${linkTopic}`,
    /** HASH identity key -> root key. */
    indexOf: (environmentId: string, key: Buffer) => `${name('i', environmentId)}:${bucketOf(key)}`,
    indexPattern: (environmentId: string) => `${name('i', environmentId)}:*`,
    /**
     * STRING: four bytes about the component (kinds, a bit each; number of anonymous ids), then each member's identity
     * key, kind and link time, in no order. The root key stands in the name as raw bytes.
     */
    membersOf: (environmentId: string, root: Buffer) =>
      Buffer.concat([Buffer.from(`${name('m', environmentId)}:`), root]),
    /** STRING, a bit a bucket: where fences may stand. Set before the fence is. */
    fenceMapOf: (environmentId: string) => name('f', environmentId),
    /** HASH identity key -> cut-off in ms. */
    fencesOf: (environmentId: string, key: Buffer) => `${name('f', environmentId)}:${bucketOf(key)}`,
    /** HASH identity key -> cut-off in ms. */
    holdsOf: (environmentId: string) => name('h', environmentId),
    /** HASH generation/partition/first offset-last offset -> decisions recorded by one call. */
    outboxOf: (environmentId: string) => name('o', environmentId),
  } as const;
}
export type Layout = ReturnType<typeof createLayout>;

/** Bytes of a member: its key, a letter for the kind and the link time in six bytes. */
export const MEMBER_BYTES = IDENTITY_KEY_BYTES + 1 + 6;
/** Bytes of a component before its first member. */
export const COMPONENT_HEADER_BYTES = 4;
