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
import type {
  ActivityRecord,
  ChainMetadataRecord,
  IndexProgressRecord,
  MintRequestRecord,
  MintStateRecord,
  MintTransactionRecord,
  TokenRecord,
} from './chain-records.ts';
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

/**
 * Gets a registered schema by its id; null when the registry does not know the id.
 * @throws when the registry cannot be reached, so that the answer is unknown
 */
export type SchemaSource = (id: number) => Promise<string | null>;

/** Whether values of a schema id can be read. */
export type SchemaReader<R> =
  | { readonly kind: 'readable'; readonly reader: R }
  /** No value of this id can be read, so its records become dead letters. The reason contains no data of a record. */
  | { readonly kind: 'unreadable'; readonly reason: string };

/** Readers of values by the schema id of the writer. Created once per id, then found without waiting. */
export interface SchemaReaders<R> {
  /** The reader if it is known; undefined when `ask` must be called. */
  known(id: number): SchemaReader<R> | undefined;
  /** Asks the registry, once for concurrent calls. @throws what the source threw; the next call asks again */
  fetch(id: number): Promise<SchemaReader<R>>;
}

export interface SchemaReadersOptions<R> {
  readonly schemaOf: SchemaSource;
  /** Creates the reader for a writer's schema. @throws Error when this release's schema cannot read it */
  readonly createReader: (writerSchema: string) => R;
  /** A monotonic clock in milliseconds, of any origin. */
  readonly nowMs?: () => number;
}

/** A restored registry may know an id later, so ask again, but not for every bad record. */
const UNKNOWN_TRUSTED_MS = 60_000;
/**
 * Bounds the memory for ids of damaged records, which can be any number. Readable ids are few: one per schema version.
 */
const UNREADABLE_MAX = 1_000;

/** Creates readers from the schemas of a registry. Every process that reads values by their schema id uses it. */
export function createSchemaReaders<R>(options: SchemaReadersOptions<R>): SchemaReaders<R> {
  const { schemaOf, createReader, nowMs = () => performance.now() } = options;
  const readable = new Map<number, SchemaReader<R>>();
  const unreadable = new Map<number, { answer: SchemaReader<R>; untilMs: number }>();
  const asked = new Map<number, Promise<SchemaReader<R>>>();

  /** @param why the reason. It has the id after a colon, so that reasons can be counted without ids */
  const refuse = (id: number, why: string, trustedMs: number) => {
    const answer = { kind: 'unreadable', reason: why } as const;
    unreadable.delete(id);
    const [oldest] = unreadable.keys();
    if (unreadable.size >= UNREADABLE_MAX) unreadable.delete(oldest!);
    unreadable.set(id, { answer, untilMs: nowMs() + trustedMs });
    return answer;
  };
  const make = async (id: number): Promise<SchemaReader<R>> => {
    const schema = await schemaOf(id);
    if (schema === null) return refuse(id, `schema not in the registry: ${id}`, UNKNOWN_TRUSTED_MS);
    try {
      const answer = { kind: 'readable', reader: createReader(schema) } as const;
      readable.set(id, answer);
      return answer;
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      return refuse(id, `schema cannot be read: ${id}, ${why}`, Number.POSITIVE_INFINITY);
    }
  };
  const known = (id: number) => {
    const refused = unreadable.get(id);
    return readable.get(id) ?? (refused !== undefined && refused.untilMs > nowMs() ? refused.answer : undefined);
  };
  return {
    known,
    fetch(id) {
      const standing = asked.get(id);
      if (standing !== undefined) return standing;
      const answer = make(id).finally(() => asked.delete(id));
      asked.set(id, answer);
      return answer;
    },
  };
}

/** A value as it was read, or why it cannot be. */
export type ReadValue<T> =
  | { readonly kind: 'record'; readonly record: T }
  | { readonly kind: 'unreadable'; readonly reason: string };

/**
 * Reads the value of a record in the Confluent frame. Returns a promise only when the registry must be asked first.
 * @throws what the source threw, as a rejection: it is then unknown whether the value can be read
 */
export type RecordReader<T> = (value: Buffer | null) => ReadValue<T> | Promise<ReadValue<T>>;

/** Creates the reader for the values of one topic, written with any version of its schema. */
export function createRecordReader<T>(options: SchemaReadersOptions<(body: Buffer) => T>): RecordReader<T> {
  const readers = createSchemaReaders(options);
  return (value) => {
    const id = value === null ? null : schemaIdOf(value);
    if (value === null || id === null) return { kind: 'unreadable', reason: 'no schema id' };
    const found = readers.known(id);
    if (found !== undefined) return readBy(found, value, id);
    return readers.fetch(id).then((asked) => readBy(asked, value, id));
  };
}

function readBy<T>(found: SchemaReader<(body: Buffer) => T>, value: Buffer, id: number): ReadValue<T> {
  if (found.kind === 'unreadable') return found;
  try {
    return { kind: 'record', record: found.reader(value.subarray(FRAME_BYTES)) };
  } catch {
    // The decoder's message is dropped: it may quote bytes of the record, such as an id of a player.
    return { kind: 'unreadable', reason: `not a record of its schema: ${id}` };
  }
}
