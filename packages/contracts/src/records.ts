import { readFileSync } from 'node:fs';
import avro from 'avsc';
import type * as access from './access-records.ts';
import type * as audience from './audience-records.ts';
import type * as chain from './chain-records.ts';
import type { Topic } from './topics.ts';

/** Encodes and decodes the Avro body of a record, without the Confluent frame. */
export interface RecordCodec<T> {
  /** The registered Avro schema, JSON text. */
  readonly schema: string;
  encode(record: T): Buffer;
  /** @throws Error when the bytes are not one record of this schema */
  decode(bytes: Buffer): T;
  /**
   * Creates a decoder for records of another version of the schema, by Avro's rules of schema resolution.
   * @throws Error when the versions are incompatible
   */
  decoderOf(writerSchema: string): (bytes: Buffer) => T;
}

/** The Avro schema of a topic as JSON text; null for raw bytes. */
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

export const messageRecordCodec: RecordCodec<audience.MessageRecord> = openCodec('audience-message.avsc');
export const identityLinkCodec: RecordCodec<audience.IdentityLinkRecord> = openCodec('identity-link.avsc');
export const identityDecisionCodec: RecordCodec<audience.IdentityDecisionRecord> = openCodec('identity-decision.avsc');
export const consentCodec: RecordCodec<audience.ConsentRecord> = openCodec('consent.avsc');
export const rejectionCodec: RecordCodec<audience.RejectionRecord> = openCodec('rejection.avsc');
export const erasureRequestCodec: RecordCodec<audience.ErasureRequestRecord> = openCodec('erasure-request.avsc');
export const accessKeyCodec: RecordCodec<access.AccessKeyRecord> = openCodec('access-key.avsc');
export const rateLimitKeyCodec: RecordCodec<access.RateLimitKeyRecord> = openCodec('rate-limit-key.avsc');
export const projectCodec: RecordCodec<access.ProjectRecord> = openCodec('project.avsc');
export const collectionCodec: RecordCodec<access.CollectionRecord> = openCodec('collection.avsc');
export const accountCodec: RecordCodec<access.AccountRecord> = openCodec('account.avsc');
export const signableKeyCodec: RecordCodec<access.SignableKeyRecord> = openCodec('signable-key.avsc');
export const auditEntryCodec: RecordCodec<access.AuditEntryRecord> = openCodec('audit-entry.avsc');
export const activityCodec: RecordCodec<chain.ActivityRecord> = openCodec('chain-activity.avsc');
export const tokenCodec: RecordCodec<chain.TokenRecord> = openCodec('chain-token.avsc');
export const indexProgressCodec: RecordCodec<chain.IndexProgressRecord> = openCodec('chain-index-progress.avsc');
export const mintRequestCodec: RecordCodec<chain.MintRequestRecord> = openCodec('mint-request.avsc');
export const mintStateCodec: RecordCodec<chain.MintStateRecord> = openCodec('mint-state.avsc');
export const mintTransactionCodec: RecordCodec<chain.MintTransactionRecord> = openCodec('mint-transaction.avsc');
export const chainMetadataCodec: RecordCodec<chain.ChainMetadataRecord> = openCodec('chain-metadata.avsc');

/** The Confluent frame: a zero byte and the schema id, big-endian. */
export const FRAME_BYTES = 5;

export function frameRecord(schemaId: number, body: Buffer): Buffer {
  const framed = Buffer.allocUnsafe(FRAME_BYTES + body.length);
  framed[0] = 0;
  framed.writeInt32BE(schemaId, 1);
  body.copy(framed, FRAME_BYTES);
  return framed;
}

/** Null without a Confluent frame. */
export function schemaIdOf(value: Buffer): number | null {
  return value.length >= FRAME_BYTES && value[0] === 0 ? value.readInt32BE(1) : null;
}

/**
 * Reads a schema by its id; null when the registry does not know the id.
 * @throws when the registry is unavailable
 */
export type SchemaSource = (id: number) => Promise<string | null>;

export type SchemaReader<R> =
  | { readonly kind: 'readable'; readonly reader: R }
  /** Records with this id become dead letters. The reason contains no data of a record. */
  | { readonly kind: 'unreadable'; readonly reason: string };

/** Readers by the schema id of the writer, created once per id. */
export interface SchemaReaders<R> {
  /** Undefined when `fetch` must be called. */
  known(id: number): SchemaReader<R> | undefined;
  /**
   * Queries the registry, once for concurrent calls.
   * @throws what the source threw; the next call retries
   */
  fetch(id: number): Promise<SchemaReader<R>>;
}

export interface SchemaReadersOptions<R> {
  readonly schemaOf: SchemaSource;
  /** @throws Error when this release cannot read the writer's schema */
  readonly createReader: (writerSchema: string) => R;
  /** Monotonic milliseconds. */
  readonly nowMs?: () => number;
}

/** A restored registry may know an id later. */
const UNKNOWN_TRUSTED_MS = 60_000;
/** Bounds the memory for ids of damaged records. */
const UNREADABLE_MAX = 1_000;

export function createSchemaReaders<R>(options: SchemaReadersOptions<R>): SchemaReaders<R> {
  const { schemaOf, createReader, nowMs = () => performance.now() } = options;
  const readable = new Map<number, SchemaReader<R>>();
  const unreadable = new Map<number, { answer: SchemaReader<R>; untilMs: number }>();
  const fetching = new Map<number, Promise<SchemaReader<R>>>();

  /** `why` has the id after a colon, so that reasons can be counted without ids. */
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
      const answer = fetching.get(id) ?? make(id).finally(() => fetching.delete(id));
      fetching.set(id, answer);
      return answer;
    },
  };
}

export type ReadValue<T> =
  | { readonly kind: 'record'; readonly record: T }
  | { readonly kind: 'unreadable'; readonly reason: string };

/**
 * Reads a framed value. Returns a promise only when the registry must be queried.
 * @throws what the source threw, as a rejection
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
    return readers.fetch(id).then((reader) => readBy(reader, value, id));
  };
}

function readBy<T>(found: SchemaReader<(body: Buffer) => T>, value: Buffer, id: number): ReadValue<T> {
  if (found.kind === 'unreadable') return found;
  try {
    return { kind: 'record', record: found.reader(value.subarray(FRAME_BYTES)) };
  } catch {
    // The decoder's message may quote bytes of the record, such as a player's id.
    return { kind: 'unreadable', reason: `not a record of its schema: ${id}` };
  }
}
