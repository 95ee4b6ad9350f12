import { IDENTITY_KEY_BYTES, type IdentityKind } from '@playline/contracts';

/**
 * Key families: `<namespace><family>:{environment}`, or `<namespace><family>:{<cell>}:<environment>` in a store that
 * is divided into cells. The hash tag keeps the keys of an environment, or of a cell, in one slot.
 */
const FAMILIES = {
  /** HASH per bucket: identity key -> root key. */
  index: 'i',
  /**
   * STRING per component, with the raw root key in its name: four bytes (kind bitmap, number of anonymous ids), then
   * each member's identity key, kind and link time, unordered.
   */
  component: 'm',
  /** HASH per bucket: identity key -> cut-off in decimal ms. STRING without a bucket: bitmap of buckets with fences. */
  fences: 'f',
  /**
   * HASH identity key -> unlink sides of 14 bytes each: generation, offset (6 bytes), time (6 bytes), side; 'latest' ->
   * latest time in decimal ms.
   */
  unlinks: 'u',
  /** HASH identity key -> suspect of 14 bytes: state, time (6 bytes), the fact's generation and offset. */
  suspects: 'q',
  /** HASH of facts decided before a rebuild: generation and block -> bitmap of 1,024 offsets; 'last' -> last offset. */
  decided: 'd',
  /** HASH identity key -> latest cut-off in decimal ms. */
  holds: 'h',
  /** HASH erasure id -> cut-off, expiry (0: never), keys. */
  leases: 'hl',
  /** ZSET in lexicographic order: identity key ‖ cut-off (6 bytes) ‖ erasure id. */
  holders: 'hk',
  /** HASH generation/partition/first offset-last offset -> decisions of one call. */
  outbox: 'o',
  /** HASH per bucket: identity key -> status, partition, offset, logged at, received at. */
  consents: 'c',
} as const;

/**
 * 16,384 buckets: with a million identities, about 64 per bucket, which is small enough for a listpack
 * (`infra/redis/README.md`). Must not change: stored keys are not migrated.
 */
const BUCKET_BITS = 14;
/** A key's first two bytes, divided by this number and rounded down, are its bucket. */
const BUCKET_KEYS = 2 ** (16 - BUCKET_BITS);

/** The bucket is the first 14 bits of the key. */
export function bucketOf(key: Buffer): number {
  return Math.floor(key.readUInt16BE(0) / BUCKET_KEYS);
}

/** Size of an offset or a timestamp in bytes. Covers timestamps up to the year 10,889. */
export const NUMBER_BYTES = 6;
/** Size of a member in bytes: key, kind and link time. */
export const MEMBER_BYTES = IDENTITY_KEY_BYTES + 1 + NUMBER_BYTES;
/** Size of the header that precedes a component's members. */
export const COMPONENT_HEADER_BYTES = 4;

/** Kinds in bit order. Codes and bits are stored in Redis, so append new kinds at the end. */
export const KIND_CODES: Readonly<Record<IdentityKind, string>> = {
  anonymous: 'a',
  passport: 'p',
  steam: 's',
  epic: 'e',
  google: 'g',
  apple: 'l',
  discord: 'd',
  email: 'm',
  custom: 'c',
  untyped: 'u',
};

export interface LayoutNames {
  /** Key prefix; '' in deployments, unique in each test. */
  readonly namespace: string;
  /** Topic name on the broker. */
  readonly linkTopic: string;
  /** Topic name on the broker. */
  readonly consentTopic: string;
  /**
   * The cell whose keys are named, such as `c3/16` for the fourth of 16; null for a store that is not divided. A process
   * with another number of cells therefore finds no epoch.
   */
  readonly cell: string | null;
}

export function createLayout({ namespace, linkTopic, consentTopic, cell }: LayoutNames) {
  const tag = cell === null ? '' : `:{${cell}}`;
  const scopeOf = (environmentId: string) => (cell === null ? `{${environmentId}}` : `{${cell}}:${environmentId}`);
  const nameOf = (family: keyof typeof FAMILIES, environmentId: string) =>
    `${namespace}${FAMILIES[family]}:${scopeOf(environmentId)}`;
  const bucketIn = (family: 'index' | 'fences' | 'consents') => (environmentId: string, key: Buffer) =>
    `${nameOf(family, environmentId)}:${bucketOf(key)}`;
  return {
    /** For scripts that construct key names. */
    namespace,
    /** The part of a key's name that identifies the environment. The scripts' argument "environment". */
    scopeOf,
    /**
     * For scripts that construct key names: a key that never exists. While a slot moves between two nodes, Redis refuses
     * scripts that name a missing key, and would run others on the node that has only some of the slot's keys.
     */
    absent: cell === null ? [] : [`${namespace}identity:epoch${tag}:absent`],
    /** STRING: exists only if the store is complete. */
    epoch: `${namespace}identity:epoch${tag}`,
    /** STRING: the Redis run in which all fences were set and enforced. */
    fencedRun: `${namespace}f:complete${tag}`,
    /** HASH generation/partition -> last applied offset of the link topic. */
    progress: `${namespace}identity:applied${tag}:${linkTopic}`,
    /** HASH 'run' -> the Redis run in which the whole log was applied; partition -> highest applied offset. */
    consentLog: `${namespace}c:log${tag}:${consentTopic}`,
    /** ZSET environment ‖ 0x00 ‖ erasure id, scored by expiry, for all environments of the cell. */
    lapsing: `${namespace}erasure:lapsing${tag}`,
    indexOf: bucketIn('index'),
    fencesOf: bucketIn('fences'),
    consentsOf: bucketIn('consents'),
    leasesOf: (environmentId: string) => nameOf('leases', environmentId),
    unlinksOf: (environmentId: string) => nameOf('unlinks', environmentId),
    suspectsOf: (environmentId: string) => nameOf('suspects', environmentId),
    /** Without an environment, the indexes of all environments and cells. */
    indexPattern: (environmentId?: string) =>
      environmentId === undefined ? `${namespace}${FAMILIES.index}:{*` : `${nameOf('index', environmentId)}:*`,
    /** The environment of an index. */
    environmentOf: (index: string) => {
      const scope = index.slice(namespace.length + FAMILIES.index.length + 1, index.lastIndexOf(':'));
      return cell === null ? scope.slice(1, -1) : scope.slice(scope.indexOf('}') + 2);
    },
    componentOf: (environmentId: string, root: Buffer) =>
      Buffer.concat([Buffer.from(`${nameOf('component', environmentId)}:`), root]),
    /** Keys of the hold scripts, in KEYS order. */
    holdKeysOf: (environmentId: string) =>
      (['leases', 'holders', 'holds'] as const).map((family) => nameOf(family, environmentId)),
  } as const;
}
export type Layout = ReturnType<typeof createLayout>;

const kindBits = Object.values(KIND_CODES).map((code, at) => `${code} = ${2 ** at}`);

/** Lua constants and functions for the layout, prepended to each script. */
export const LUA_LAYOUT = `
local FAMILY = { ${Object.entries(FAMILIES)
  .map(([family, prefix]) => `${family} = '${prefix}'`)
  .join(', ')} }
local KEY_BYTES, MEMBER_BYTES, HEADER_BYTES = ${IDENTITY_KEY_BYTES}, ${MEMBER_BYTES}, ${COMPONENT_HEADER_BYTES}
local KIND_BITS = { ${kindBits.join(', ')} }
local NO_EPOCH = 'NOEPOCH no epoch is set'
local NO_FENCES = 'NOFENCES fences may be missing in this run'
local floor, unpack_bytes = math.floor, struct.unpack
local function name_of(namespace, family, scope) return namespace .. family .. ':' .. scope end
local function bucket_of(key) return floor(unpack_bytes('>I2', key) / ${BUCKET_KEYS}) end
`;
