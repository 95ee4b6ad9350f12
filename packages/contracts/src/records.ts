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
import type {
  ConsentRecord,
  ErasureRequestRecord,
  IdentityDecisionRecord,
  IdentityLinkRecord,
  MessageRecord,
  RejectionRecord,
} from './audience-records.ts';
import type { ActivityRecord, IndexProgressRecord, TokenRecord } from './chain-records.ts';
import type { ChainMetadataRecord, MintRequestRecord, MintStateRecord, MintTransactionRecord } from './mint-records.ts';
import type { Topic } from './topics.ts';

/** Encodes and decodes the bare Avro body of a record, without the Confluent frame. */
export interface RecordCodec<T> {
  /** The Avro schema as it is registered, JSON text. */
  readonly schema: string;
  encode(record: T): Buffer;
  /** @throws Error when the bytes are not a record of this schema, or more than one. */
  decode(bytes: Buffer): T;
  /**
   * Creates a decoder for records of any version of the schema, by Avro's rules of schema resolution: fields are
   * matched by name, unknown fields are skipped, missing fields get their default.
   * @throws Error when the versions are incompatible
   */
  decoderOf(writerSchema: string): (bytes: Buffer) => T;
}

/** The Avro schema of a topic's values as JSON text; null when values are raw bytes. */
export function schemaTextOf({ schema }: Pick<Topic, 'schema'>): string | null {
  return schema === null ? null : readSchema(schema);
}

function readSchema(file: string): string {
  return readFileSync(new URL(`../schemas/${file}`, import.meta.url), 'utf8');
}

function openCodec<T>(file: string): RecordCodec<T> {
  const schema = readSchema(file);
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
export const indexProgressCodec: RecordCodec<IndexProgressRecord> = openCodec('chain-index-progress.avsc');
export const mintRequestCodec: RecordCodec<MintRequestRecord> = openCodec('mint-request.avsc');
export const mintStateCodec: RecordCodec<MintStateRecord> = openCodec('mint-state.avsc');
export const mintTransactionCodec: RecordCodec<MintTransactionRecord> = openCodec('mint-transaction.avsc');
export const chainMetadataCodec: RecordCodec<ChainMetadataRecord> = openCodec('chain-metadata.avsc');

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
