import { readFileSync } from 'node:fs';
import avro from 'avsc';
import type * as access from './access-records.ts';
import type * as audience from './audience-records.ts';
import type * as chain from './chain-records.ts';
import type { Topic } from './topics.ts';

/** Encodes and decodes the Avro body of a record, without the Confluent header. */
export interface RecordCodec<T> {
  /** The registered Avro schema as JSON. */
  readonly schema: string;
  encode(record: T): Buffer;
  /** @throws Error if the bytes are not exactly one record with this schema */
  decode(bytes: Buffer): T;
  /**
   * Creates a decoder for records written with another version of the schema, using Avro's schema resolution.
   * @throws Error if the versions are incompatible
   */
  decoderOf(writerSchema: string): (bytes: Buffer) => T;
}

/** Returns the Avro schema of a topic as JSON, or null if the topic contains raw bytes. */
export function readTopicSchema({ schema }: Pick<Topic, 'schema'>): string | null {
  return schema === null ? null : readSchema(schema);
}

function readSchema(file: string): string {
  return readFileSync(new URL(`../schemas/${file}`, import.meta.url), 'utf8');
}

function loadCodec<T>(file: string): RecordCodec<T> {
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

export const messageRecordCodec: RecordCodec<audience.MessageRecord> = loadCodec('audience-message.avsc');
export const identityLinkCodec: RecordCodec<audience.IdentityLinkRecord> = loadCodec('identity-link.avsc');
export const identityDecisionCodec: RecordCodec<audience.IdentityDecisionRecord> = loadCodec('identity-decision.avsc');
export const consentCodec: RecordCodec<audience.ConsentRecord> = loadCodec('consent.avsc');
export const rejectionCodec: RecordCodec<audience.RejectionRecord> = loadCodec('rejection.avsc');
export const erasureRequestCodec: RecordCodec<audience.ErasureRequestRecord> = loadCodec('erasure-request.avsc');
export const accessKeyCodec: RecordCodec<access.AccessKeyRecord> = loadCodec('access-key.avsc');
export const rateLimitKeyCodec: RecordCodec<access.RateLimitKeyRecord> = loadCodec('rate-limit-key.avsc');
export const projectCodec: RecordCodec<access.ProjectRecord> = loadCodec('project.avsc');
export const collectionCodec: RecordCodec<access.CollectionRecord> = loadCodec('collection.avsc');
export const accountCodec: RecordCodec<access.AccountRecord> = loadCodec('account.avsc');
export const signableKeyCodec: RecordCodec<access.SignableKeyRecord> = loadCodec('signable-key.avsc');
export const auditEntryCodec: RecordCodec<access.AuditEntryRecord> = loadCodec('audit-entry.avsc');
export const activityCodec: RecordCodec<chain.ActivityRecord> = loadCodec('chain-activity.avsc');
export const tokenCodec: RecordCodec<chain.TokenRecord> = loadCodec('chain-token.avsc');
export const indexProgressCodec: RecordCodec<chain.IndexProgressRecord> = loadCodec('chain-index-progress.avsc');
export const mintRequestCodec: RecordCodec<chain.MintRequestRecord> = loadCodec('mint-request.avsc');
export const mintStateCodec: RecordCodec<chain.MintStateRecord> = loadCodec('mint-state.avsc');
export const mintTransactionCodec: RecordCodec<chain.MintTransactionRecord> = loadCodec('mint-transaction.avsc');
export const chainMetadataCodec: RecordCodec<chain.ChainMetadataRecord> = loadCodec('chain-metadata.avsc');

/** The Confluent wire format starts with a zero byte and the schema id in big-endian order. */
export const FRAME_BYTES = 5;

export function frameRecord(schemaId: number, body: Buffer): Buffer {
  const framed = Buffer.allocUnsafe(FRAME_BYTES + body.length);
  framed[0] = 0;
  framed.writeInt32BE(schemaId, 1);
  body.copy(framed, FRAME_BYTES);
  return framed;
}

/** Returns null if the value is not in the Confluent wire format. */
export function schemaIdOf(value: Buffer): number | null {
  return value.length >= FRAME_BYTES && value[0] === 0 ? value.readInt32BE(1) : null;
}

/**
 * Reads a schema by id. Returns null if the registry does not have the id.
 * @throws Error if the registry is unavailable
 */
export type SchemaSource = (id: number) => Promise<string | null>;

export type SchemaReader<R> =
  | { readonly kind: 'readable'; readonly reader: R }
  /** Records with this schema id become dead letters. The reason contains no record data. */
  | { readonly kind: 'unreadable'; readonly reason: string };

/** Caches one reader per schema id. */
export interface SchemaReaders<R> {
  /** Returns undefined if the reader must first be fetched. */
  get(id: number): SchemaReader<R> | undefined;
  /**
   * Queries the registry. Concurrent calls for an id share one query.
   * @throws the error of the source; the next call retries
   */
  fetch(id: number): Promise<SchemaReader<R>>;
}

export interface SchemaReadersOptions<R> {
  readonly schemaOf: SchemaSource;
  /** @throws Error if this release cannot read the writer's schema */
  readonly createReader: (writerSchema: string) => R;
  /** Monotonic milliseconds. */
  readonly nowMs?: () => number;
}

/** Unknown ids are looked up again after this time, because a registry may be restored. */
const UNKNOWN_TTL_MS = 60_000;
/** Limits the memory for schema ids in corrupt records. */
const UNREADABLE_MAX = 1_000;

export function createSchemaReaders<R>(options: SchemaReadersOptions<R>): SchemaReaders<R> {
  const { schemaOf, createReader, nowMs = () => performance.now() } = options;
  const readable = new Map<number, SchemaReader<R>>();
  const unreadable = new Map<number, { result: SchemaReader<R>; untilMs: number }>();
  const fetching = new Map<number, Promise<SchemaReader<R>>>();

  /** In `reason` the id follows a colon, so that reasons can be counted without their ids. */
  const refuse = (id: number, reason: string, ttlMs: number) => {
    const result = { kind: 'unreadable', reason } as const;
    unreadable.delete(id);
    const [oldest] = unreadable.keys();
    if (unreadable.size >= UNREADABLE_MAX) unreadable.delete(oldest!);
    unreadable.set(id, { result, untilMs: nowMs() + ttlMs });
    return result;
  };
  const create = async (id: number): Promise<SchemaReader<R>> => {
    const schema = await schemaOf(id);
    if (schema === null) return refuse(id, `schema not in the registry: ${id}`, UNKNOWN_TTL_MS);
    try {
      const result = { kind: 'readable', reader: createReader(schema) } as const;
      readable.set(id, result);
      return result;
    } catch (error) {
      const cause = error instanceof Error ? error.message : String(error);
      return refuse(id, `schema cannot be read: ${id}, ${cause}`, Number.POSITIVE_INFINITY);
    }
  };
  const get = (id: number) => {
    const refused = unreadable.get(id);
    return readable.get(id) ?? (refused !== undefined && refused.untilMs > nowMs() ? refused.result : undefined);
  };
  return {
    get,
    fetch(id) {
      const pending = fetching.get(id) ?? create(id).finally(() => fetching.delete(id));
      fetching.set(id, pending);
      return pending;
    },
  };
}

export type RecordResult<T> =
  | { readonly kind: 'record'; readonly record: T }
  | { readonly kind: 'unreadable'; readonly reason: string };

/**
 * Decodes a value in the Confluent wire format. Returns a promise only if the registry must be queried; the promise
 * rejects with the error of the source.
 */
export type RecordReader<T> = (value: Buffer | null) => RecordResult<T> | Promise<RecordResult<T>>;

/** Creates a reader for the values of a topic, written with any version of its schema. */
export function createRecordReader<T>(options: SchemaReadersOptions<(body: Buffer) => T>): RecordReader<T> {
  const readers = createSchemaReaders(options);
  return (value) => {
    const id = value === null ? null : schemaIdOf(value);
    if (value === null || id === null) return { kind: 'unreadable', reason: 'no schema id' };
    const found = readers.get(id);
    if (found !== undefined) return decodeWith(found, value, id);
    return readers.fetch(id).then((reader) => decodeWith(reader, value, id));
  };
}

function decodeWith<T>(found: SchemaReader<(body: Buffer) => T>, value: Buffer, id: number): RecordResult<T> {
  if (found.kind === 'unreadable') return found;
  try {
    return { kind: 'record', record: found.reader(value.subarray(FRAME_BYTES)) };
  } catch {
    // The decoder's error message may contain record data, such as a player's id.
    return { kind: 'unreadable', reason: `not a record of its schema: ${id}` };
  }
}
