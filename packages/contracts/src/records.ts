import { readFileSync } from 'node:fs';
import avro from 'avsc';
import type {
  AccessKeyRecord,
  AccountRecord,
  AuditEntryRecord,
  CollectionRecord,
  ProjectRecord,
  RateLimitKeyRecord,
  SignableKeyRecord,
} from './access-records.ts';
import type { ActivityType, IdentityKind, VerificationStatus } from './enumerations.ts';
import type { ChainMetadataRecord, MintRequestRecord, MintStateRecord, MintTransactionRecord } from './mint-records.ts';

/** Sixteen zero bytes: nobody. */
export const ZERO_KEY: Buffer = Buffer.alloc(16);

/** Value of `audience.messages.v1`. Keys and ids are 16 raw bytes; times are epoch milliseconds; absent strings are ''. */
export interface MessageRecord {
  environmentId: string;
  type: string;
  eventName: string;
  eventTime: number;
  receivedAt: number;
  messageId: Buffer;
  identityKey: Buffer;
  anonymousKey: Buffer;
  userKey: Buffer;
  fromKey: Buffer;
  toKey: Buffer;
  anonymousId: string;
  userId: string;
  identityType: string;
  fromId: string;
  fromType: string;
  toId: string;
  toType: string;
  deviceId: string;
  sessionId: string;
  surface: string;
  consentLevel: string;
  test: boolean;
  library: string;
  libraryVersion: string;
  userAgent: string;
  locale: string;
  timezone: string;
  screen: string;
  screenDensity: number | null;
  pageUrl: string;
  pagePath: string;
  pageReferrer: string;
  pageTitle: string;
  browserLanguage: string;
  /** The object's JSON text as it stood in the body, but for what the column store cannot read; '' when absent. */
  properties: string;
  /** The object's JSON text as it stood in the body, but for what the column store cannot read; '' when absent. */
  traits: string;
  /** 32 lower-case hex characters. */
  traceId: string;
}

/** Value of `audience.identity-links.v1`: identify links its anonymous id (from) with its user id (to). */
export interface IdentityLinkRecord {
  environmentId: string;
  messageId: Buffer;
  link: 'identify' | 'alias';
  fromKind: IdentityKind;
  fromId: string;
  toKind: IdentityKind;
  toId: string;
  eventTime: number;
  receivedAt: number;
  traceId: string;
  /** Not empty: these are split off from the rest of their person, and both ids are one text that belongs to nobody. */
  unlink: { key: Buffer; kind: IdentityKind }[];
}

/** Value of `audience.identity-decisions.v1`: the outcome of one step of one link fact. */
export interface IdentityDecisionRecord {
  environmentId: string;
  generation: number;
  partition: number;
  offset: number;
  step: number;
  messageId: Buffer;
  link: 'identify' | 'alias' | 'same_id';
  aKey: Buffer;
  aKind: IdentityKind;
  bKey: Buffer;
  bKind: IdentityKind;
  outcome: 'linked' | 'unchanged' | 'refused' | 'ambiguous';
  reason: string;
  root: Buffer;
  moved: DecidedIdentity[];
  eventTime: number;
  receivedAt: number;
  traceId: string;
  /** Of an unlink: who stays, under which person key, when those who moved are split off; nobody where nothing was split. */
  unlink: { stayedRoot: Buffer; stayed: DecidedIdentity[] } | null;
}

/** An identity of a decision. `linkedAt`: epoch milliseconds of its first link; a later move keeps it. */
export interface DecidedIdentity {
  key: Buffer;
  kind: IdentityKind;
  linkedAt: number;
}

/**
 * What a decision is called outside of the log. Symbols of an enumeration never change (a release that does not know one
 * could not read the record), so an unlink is logged under the words of a link, with `unlink` beside them.
 */
export function decisionWords({ link, outcome, unlink }: Pick<IdentityDecisionRecord, 'link' | 'outcome' | 'unlink'>) {
  if (unlink === null) return { link, outcome };
  return { link: 'unlink', outcome: outcome === 'linked' ? 'unlinked' : outcome } as const;
}

/** Value of `audience.consents.v1`. */
export interface ConsentRecord {
  environmentId: string;
  identityKey: Buffer;
  status: 'none' | 'anonymous' | 'full';
  source: string;
  receivedAt: number;
  traceId: string;
}

/** Value of `audience.rejections.v1`: one error of one rejected message. */
export interface RejectionRecord {
  environmentId: string;
  code: string;
  field: string;
  surface: string;
  library: string;
  libraryVersion: string;
  receivedAt: number;
  traceId: string;
}

/** Value of `audience.erasures.v1`. */
export interface ErasureRequestRecord {
  erasureId: Buffer;
  environmentId: string;
  subjectKeys: Buffer[];
  memberKeys: Buffer[];
  cutoffAt: number;
  requestedAt: number;
  traceId: string;
}

/** Value of `chain.activities.v1`, keyed by `chain`. Addresses have 20 bytes. */
export interface ActivityRecord {
  /** Name of the chain. */
  chain: string;
  /** 16 bytes of a UUID. The same id again is a new version: chain, type, contract and `indexedAt` stay as they were. */
  id: Buffer;
  type: ActivityType;
  /** Contract of the asset; of a sale that of all its assets. */
  contractAddress: Buffer;
  /** Epoch microseconds, below 2^53 - 1. */
  indexedAt: number;
  blockchainMetadata: BlockchainMetadata | null;
  /** JSON text of an object whose members depend on `type`; addresses in lower case. */
  details: string;
  /** 32 lower-case hex characters. */
  traceId: string;
}

/** Where an activity stands on its chain. Numbers are decimal digits, as the interface shows them. */
export interface BlockchainMetadata {
  /** 32 bytes. */
  transactionHash: Buffer;
  blockNumber: string;
  transactionIndex: string;
  logIndex: string | null;
}

/**
 * Header of a record of `chain.activities.v1` without a value that is no activity: its own time says how far the partition
 * is known while nothing else is written there.
 */
export const TICK_HEADER = 'tick';

/** Value of `chain.tokens.v1`, keyed by chain and contract. Addresses have 20 bytes. */
export interface TokenRecord {
  /** Name of the chain. */
  chain: string;
  contractAddress: Buffer;
  rootContractAddress: Buffer | null;
  symbol: string | null;
  decimals: number | null;
  imageUrl: string | null;
  name: string | null;
  verificationStatus: VerificationStatus;
  isCanonical: boolean;
  /** Identifier of a chain, not its name. */
  rootChainId: string | null;
  bridgeUsed: string | null;
  /** 32 lower-case hex characters. */
  traceId: string;
}

/** Encodes and decodes the bare Avro body of a record, without the Confluent frame. */
export interface RecordCodec<T> {
  /** The Avro schema as it is registered, JSON text. */
  readonly schema: string;
  encode(record: T): Buffer;
  /** @throws Error when the bytes are not a record of this schema, or more than one. */
  decode(bytes: Buffer): T;
  /**
   * A decoder for records written with any version of the schema, by Avro's rules of resolution: fields are matched by
   * name, those that this version does not know are passed over, those that the other does not have get their default.
   * @throws Error when this version cannot read that one
   */
  decoderOf(writerSchema: string): (bytes: Buffer) => T;
}

function openCodec<T>(file: string): RecordCodec<T> {
  const schema = readFileSync(new URL(`../schemas/${file}`, import.meta.url), 'utf8');
  const type = avro.Type.forSchema(JSON.parse(schema), { wrapUnions: 'never' });
  return {
    schema,
    encode: (record) => type.toBuffer(record),
    decode: (bytes) => type.fromBuffer(bytes) as T,
    decoderOf: (writerSchema) => {
      const writer = avro.Type.forSchema(JSON.parse(writerSchema));
      if (type.equals(writer)) return (bytes) => type.fromBuffer(bytes) as T;
      const resolver = type.createResolver(writer);
      return (bytes) => type.fromBuffer(bytes, resolver) as T;
    },
  };
}

export const messageRecordCodec: RecordCodec<MessageRecord> = openCodec('audience-message.avsc');
export const identityLinkCodec: RecordCodec<IdentityLinkRecord> = openCodec('identity-link.avsc');
export const identityDecisionCodec: RecordCodec<IdentityDecisionRecord> = openCodec('identity-decision.avsc');
export const consentCodec: RecordCodec<ConsentRecord> = openCodec('consent.avsc');
export const rejectionCodec: RecordCodec<RejectionRecord> = openCodec('rejection.avsc');
export const erasureRequestCodec: RecordCodec<ErasureRequestRecord> = openCodec('erasure-request.avsc');
export const accessKeyCodec: RecordCodec<AccessKeyRecord> = openCodec('access-key.avsc');
export const rateLimitKeyCodec: RecordCodec<RateLimitKeyRecord> = openCodec('rate-limit-key.avsc');
export const projectCodec: RecordCodec<ProjectRecord> = openCodec('project.avsc');
export const collectionCodec: RecordCodec<CollectionRecord> = openCodec('collection.avsc');
export const accountCodec: RecordCodec<AccountRecord> = openCodec('account.avsc');
export const signableKeyCodec: RecordCodec<SignableKeyRecord> = openCodec('signable-key.avsc');
export const auditEntryCodec: RecordCodec<AuditEntryRecord> = openCodec('audit-entry.avsc');
export const activityCodec: RecordCodec<ActivityRecord> = openCodec('chain-activity.avsc');
export const tokenCodec: RecordCodec<TokenRecord> = openCodec('chain-token.avsc');
export const mintRequestCodec: RecordCodec<MintRequestRecord> = openCodec('mint-request.avsc');
export const mintStateCodec: RecordCodec<MintStateRecord> = openCodec('mint-state.avsc');
export const mintTransactionCodec: RecordCodec<MintTransactionRecord> = openCodec('mint-transaction.avsc');
export const chainMetadataCodec: RecordCodec<ChainMetadataRecord> = openCodec('chain-metadata.avsc');

/**
 * Builds a decoder of some fields of message records; all others are skipped: a third of the time (measured).
 * @param names with `identityKey` where another identity key is wanted: the schema defines their type there
 * @throws Error when that is missing; the decoder throws when the bytes are no message record
 */
export function createMessageFieldsDecoder<Name extends keyof MessageRecord>(
  names: readonly Name[],
): (bytes: Buffer) => Pick<MessageRecord, Name> {
  const wanted = new Set<string>(names);
  const writer = JSON.parse(messageRecordCodec.schema) as { fields: { name: string }[] };
  const reader = { ...writer, fields: writer.fields.filter(({ name }) => wanted.has(name)) };
  const type = avro.Type.forSchema(reader as avro.Schema, { wrapUnions: 'never' });
  const resolver = type.createResolver(avro.Type.forSchema(writer as avro.Schema, { wrapUnions: 'never' }));
  return (bytes) => type.fromBuffer(bytes, resolver) as Pick<MessageRecord, Name>;
}

/** Bytes before the Avro body in the Confluent wire format: a zero byte and the schema id, big-endian. */
export const FRAME_BYTES = 5;

/** Puts the Confluent frame before an Avro body. */
export function frameRecord(schemaId: number, body: Buffer): Buffer {
  const framed = Buffer.allocUnsafe(FRAME_BYTES + body.length);
  framed[0] = 0;
  framed.writeInt32BE(schemaId, 1);
  body.copy(framed, FRAME_BYTES);
  return framed;
}

/** Reads the schema id of a framed record; null when the bytes carry no Confluent frame. */
export function schemaIdOf(value: Buffer): number | null {
  return value.length >= FRAME_BYTES && value[0] === 0 ? value.readInt32BE(1) : null;
}

/** An identity and when something happened to it and was received: what a fence of an erasure is asked about. */
export interface FenceQuestion {
  readonly environmentId: string;
  /** 16 bytes. */
  readonly key: Buffer;
  readonly eventTimeMs: number;
  readonly receivedAtMs: number;
}
