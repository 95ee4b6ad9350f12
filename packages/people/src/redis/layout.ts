import { IDENTITY_KEY_BYTES, type IdentityKind } from '@playline/contracts';

/** Key families of an environment: `{namespace}{family}:{environment}`, in one slot. */
const FAMILIES = {
  /** HASH per bucket: identity key -> root key. */
  index: 'i',
  /**
   * STRING per component, named by the raw root key: four bytes (bitmap of kinds, number of anonymous ids), then
   * identity key, kind and link time of each member, unordered.
   */
  component: 'm',
  /** HASH per bucket: identity key -> cut-off in ms as text. STRING without a bucket: bitmap of buckets with fences. */
  fences: 'f',
  /**
   * HASH identity key -> its sides of unlinks, 14 bytes each: generation, offset in six bytes, time in six bytes, side;
   * 'latest' -> latest time as text.
   */
  unlinks: 'u',
  /** HASH identity key -> suspect, 14 bytes: state, time in six bytes, generation and offset of the fact. */
  suspects: 'q',
  /** HASH of facts decided before a rebuild: generation and block of 1,024 offsets -> bitmap; 'last' -> last offset. */
  decided: 'd',
  /** HASH identity key -> latest cut-off in ms as text. */
  holds: 'h',
  /** HASH erasure id -> cut-off, time from which it lapses (0: never), keys. */
  leases: 'hl',
  /** ZSET with scores 0, sorted by bytes: identity key ‖ cut-off in six bytes ‖ erasure id. */
  holders: 'hk',
  /** HASH generation/partition/first offset-last offset -> decisions recorded by one call. */
  outbox: 'o',
  /** HASH per bucket: identity key -> status, partition, offset, logged at, received at. */
  consents: 'c',
} as const;

/**
 * 16,384 buckets: about 64 identities per bucket in an environment with a million, so that a bucket stays a listpack
 * (`infra/redis/README.md`). Must not change, because stored keys do not move.
 */
const BUCKET_BITS = 14;
/** Divisor for the first two bytes of a key. */
const BUCKET_KEYS = 2 ** (16 - BUCKET_BITS);

/** Bucket of an identity key: its first 14 bits. */
export function bucketOf(key: Buffer): number {
  return Math.floor(key.readUInt16BE(0) / BUCKET_KEYS);
}

/** Bytes of an offset or a time, up to the year 10,889. */
export const NUMBER_BYTES = 6;
/** Bytes of a member: key, kind and link time. */
export const MEMBER_BYTES = IDENTITY_KEY_BYTES + 1 + NUMBER_BYTES;
/** Bytes of a component before its first member. */
export const COMPONENT_HEADER_BYTES = 4;

/** Kinds in the order of their bits. Both are stored in Redis, so add a new kind at the end. */
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
  /** Prefix of every key; '' in a deployment, different in each test. */
  readonly namespace: string;
  /** Name on the broker. */
  readonly linkTopic: string;
  /** Name on the broker. */
  readonly consentTopic: string;
}

export function createLayout({ namespace, linkTopic, consentTopic }: LayoutNames) {
  const nameOf = (family: keyof typeof FAMILIES, environmentId: string) =>
    `${namespace}${FAMILIES[family]}:{${environmentId}}`;
  const bucketIn = (family: 'index' | 'fences' | 'consents') => (environmentId: string, key: Buffer) =>
    `${nameOf(family, environmentId)}:${bucketOf(key)}`;
  return {
    /** For scripts that build key names themselves. */
    namespace,
    /** STRING: guards against an empty or half rebuilt store. */
    epoch: `${namespace}identity:epoch`,
    /** STRING: run of Redis in which the fences of all erased people were set and enforced. */
    fencedRun: `${namespace}f:complete`,
    /** HASH generation/partition -> last applied offset of the link topic. */
    progress: `${namespace}identity:applied:${linkTopic}`,
    /** HASH 'run' -> run of Redis in which the whole log was applied, partition -> greatest offset applied since. */
    consentLog: `${namespace}c:log:${consentTopic}`,
    /** ZSET environment ‖ 0x00 ‖ erasure id -> time from which it may lapse, for all environments. */
    lapsing: `${namespace}erasure:lapsing`,
    indexOf: bucketIn('index'),
    fencesOf: bucketIn('fences'),
    consentsOf: bucketIn('consents'),
    leasesOf: (environmentId: string) => nameOf('leases', environmentId),
    unlinksOf: (environmentId: string) => nameOf('unlinks', environmentId),
    suspectsOf: (environmentId: string) => nameOf('suspects', environmentId),
    indexPattern: (environmentId: string) => `${nameOf('index', environmentId)}:*`,
    componentOf: (environmentId: string, root: Buffer) =>
      Buffer.concat([Buffer.from(`${nameOf('component', environmentId)}:`), root]),
    /** Keys for the scripts of holds, in their order. */
    holdKeysOf: (environmentId: string) =>
      (['leases', 'holders', 'holds'] as const).map((family) => nameOf(family, environmentId)),
  } as const;
}
export type Layout = ReturnType<typeof createLayout>;

const kindBits = Object.values(KIND_CODES).map((code, at) => `${code} = ${2 ** at}`);

/** The layout as Lua, prepended to each script. */
export const LUA_LAYOUT = `
local FAMILY = { ${Object.entries(FAMILIES)
  .map(([family, prefix]) => `${family} = '${prefix}'`)
  .join(', ')} }
local KEY_BYTES, MEMBER_BYTES, HEADER_BYTES = ${IDENTITY_KEY_BYTES}, ${MEMBER_BYTES}, ${COMPONENT_HEADER_BYTES}
local KIND_BITS = { ${kindBits.join(', ')} }
local NO_EPOCH = 'NOEPOCH no epoch is set'
local NO_FENCES = 'NOFENCES fences may be missing in this run'
local floor, unpack_bytes = math.floor, struct.unpack
local function name_of(namespace, family, environment) return namespace .. family .. ':{' .. environment .. '}' end
local function bucket_of(key) return floor(unpack_bytes('>I2', key) / ${BUCKET_KEYS}) end
`;
