import type { IdentityKind } from '@playline/contracts';
import { IDENTITY_KEY_BYTES } from '../identities/keyer.ts';

/** Families of keys that belong to an environment: `{namespace}{family}:{environment}`, in one slot of their own. */
const FAMILIES = {
  /** HASH identity key -> root key, a bucket each. */
  index: 'i',
  /**
   * STRING, a component each: four bytes about it (kinds, a bit each; number of anonymous ids), then each member's
   * identity key, kind and link time, in no order. The root key stands in the name as raw bytes.
   */
  component: 'm',
  /** HASH identity key -> cut-off in ms as text, a bucket each; without a bucket a STRING, a bit a bucket that has any. */
  fences: 'f',
  /**
   * HASH identity key -> sides of unlinks on which it stood, 14 bytes each: generation, offset in six bytes, time in six
   * bytes, letter; 'latest' -> latest time of all, as text.
   */
  unlinks: 'u',
  /**
   * HASH of what a rebuild knew to be decided: generation and number of a block of 1,024 offsets -> a bit an offset; 'last'
   * -> greatest generation and offset of them.
   */
  decided: 'd',
  /** HASH identity key -> latest cut-off in ms as text, of the erasures that hold it. */
  holds: 'h',
  /** HASH erasure id -> cut-off, time from which it lapses or 0, keys. */
  leases: 'hl',
  /** ZSET, every score 0, so in the order of bytes: identity key ‖ cut-off in six bytes ‖ erasure id. */
  holders: 'hk',
  /** Where an earlier release kept its leases (HASH); STRING once they have moved. */
  formerLeases: 'e',
  /** HASH generation/partition/first offset-last offset -> decisions recorded by one call. */
  outbox: 'o',
  /** HASH identity key -> status, partition, offset, logged at; a bucket each. */
  consents: 'c',
} as const;

/**
 * 16,384 buckets: about 64 identities in each at a million linked identities of one environment, so that a bucket
 * stays a listpack (`infra/redis/README.md` sets the bound). It never changes: keys stand where they were put.
 */
const BUCKET_BITS = 14;
/** What the first two bytes of a key are divided by. */
const BUCKET_KEYS = 2 ** (16 - BUCKET_BITS);

/** Bucket of an identity key: its first 14 bits. */
export function bucketOf(key: Buffer): number {
  return Math.floor(key.readUInt16BE(0) / BUCKET_KEYS);
}

/** Bytes of a member: its key, a letter for the kind and the link time in six bytes. */
export const MEMBER_BYTES = IDENTITY_KEY_BYTES + 1 + 6;
/** Bytes of a component before its first member. */
export const COMPONENT_HEADER_BYTES = 4;

/** Letters of kinds, in the order of their bits. Both stand in Redis: a new kind is added at the end. */
export const KIND_LETTERS: Readonly<Record<IdentityKind, string>> = {
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
  /** Put before every key; '' in a deployment, tests keep apart with it. */
  readonly namespace: string;
  /** Topic whose offsets the graph has applied, as it is called on the broker. */
  readonly linkTopic: string;
  /** The log whose end the consents keep, as it is called on the broker. */
  readonly consentTopic: string;
}

/** Names of everything about people that stands in Redis; `infra/redis/README.md` has them in one table. */
export function createLayout({ namespace, linkTopic, consentTopic }: LayoutNames) {
  const nameOf = (family: keyof typeof FAMILIES, environmentId: string) =>
    `${namespace}${FAMILIES[family]}:{${environmentId}}`;
  const bucketIn = (family: 'index' | 'fences' | 'consents') => (environmentId: string, key: Buffer) =>
    `${nameOf(family, environmentId)}:${bucketOf(key)}`;
  return {
    /** For scripts, which make names themselves. */
    namespace,
    /** STRING: guards against an empty or half rebuilt store. */
    epoch: `${namespace}identity:epoch`,
    /** HASH generation/partition -> last applied offset of the link topic. */
    progress: `${namespace}identity:applied:${linkTopic}`,
    /** HASH 'run' -> run of Redis in which all of the log was here, partition -> greatest offset applied since. */
    consentLog: `${namespace}c:log:${consentTopic}`,
    /** ZSET environment ‖ 0x00 ‖ erasure id -> time from which it may lapse. Of every environment, so outside of any slot. */
    lapsing: `${namespace}erasure:lapsing`,
    indexOf: bucketIn('index'),
    fencesOf: bucketIn('fences'),
    consentsOf: bucketIn('consents'),
    leasesOf: (environmentId: string) => nameOf('leases', environmentId),
    unlinksOf: (environmentId: string) => nameOf('unlinks', environmentId),
    indexPattern: (environmentId: string) => `${nameOf('index', environmentId)}:*`,
    componentOf: (environmentId: string, root: Buffer) =>
      Buffer.concat([Buffer.from(`${nameOf('component', environmentId)}:`), root]),
    /** What the scripts of holds take, in their order. */
    holdKeysOf: (environmentId: string) =>
      (['leases', 'holders', 'holds', 'formerLeases'] as const).map((family) => nameOf(family, environmentId)),
  } as const;
}
export type Layout = ReturnType<typeof createLayout>;

const kindBits = Object.values(KIND_LETTERS).map((letter, at) => `${letter} = ${2 ** at}`);

/** The same for the scripts, as the lines that stand before each of them. */
export const LUA_LAYOUT = `
local FAMILY = { ${Object.entries(FAMILIES)
  .map(([family, letters]) => `${family} = '${letters}'`)
  .join(', ')} }
local KEY_BYTES, MEMBER_BYTES, HEADER_BYTES = ${IDENTITY_KEY_BYTES}, ${MEMBER_BYTES}, ${COMPONENT_HEADER_BYTES}
local KIND_BITS = { ${kindBits.join(', ')} }
local NO_EPOCH = 'NOEPOCH there is none'
local floor, unpack_bytes = math.floor, struct.unpack
local function name_of(namespace, family, environment) return namespace .. family .. ':{' .. environment .. '}' end
local function bucket_of(key) return floor(unpack_bytes('>I2', key) / ${BUCKET_KEYS}) end
`;
