/**
 * Decodes fetched records in one pass, into numbers and slices of the response. kafkajs 2.2.4 creates several objects
 * and strings per record, which took more than half of a consumer's CPU time. A contract test covers the pinned source.
 */
import { createRequire } from 'node:module';
import type { LogMark } from '../../partitions/log-mark.ts';
import type { StreamRecord } from '../../ports.ts';
import { BATCH_HEADER as AT, BATCH_MAGIC, IS_CONTROL, IS_LOG_APPEND, IS_TRANSACTIONAL } from '../protocol.ts';

const require = createRequire(import.meta.url);

const LENGTH_BYTES = 4;
const LENGTH_END = AT.length + LENGTH_BYTES;
const NO_HEADERS: FetchedHeaders = Object.freeze({});

type HeaderValue = Buffer | null;
/** A repeated header has a list of values, as in kafkajs. */
type FetchedHeaders = Readonly<Record<string, HeaderValue | HeaderValue[]>>;

interface BatchContext {
  readonly producerId: string;
  readonly inTransaction: boolean;
}

export interface FetchedRecord {
  readonly offset: number;
  readonly timestamp: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: FetchedHeaders;
  /** True for a transaction marker, which is not delivered. */
  readonly isControlRecord: boolean;
  readonly batchContext: BatchContext;
}

/** A response's records and batches, including markers and aborted records. */
export type FetchedRecords = FetchedRecord[] & { readonly batches?: readonly LogMark[] };

interface BatchHeader {
  readonly firstOffset: number;
  readonly firstTime: number;
  /** The time of all records if the broker assigned it, otherwise null. */
  readonly logTime: number | null;
  readonly count: number;
  readonly isControl: boolean;
  readonly context: BatchContext;
}

/** The members of the kafkajs decoder that are used here. Its offset points to the int32 length of the batches. */
export interface FetchDecoder {
  readonly buffer: Buffer;
  offset: number;
}

const codecOf: (attributes: number) => { decompress(bytes: Buffer): Promise<Buffer> } | null =
  require('kafkajs/src/protocol/message/compression').lookupCodecByAttributes;

/** @throws RangeError if the bytes are not valid records */
class RecordReader {
  readonly #bytes: Buffer;
  #at: number;

  constructor(bytes: Buffer, at: number) {
    this.#bytes = bytes;
    this.#at = at;
  }

  record(header: BatchHeader): FetchedRecord {
    const end = this.#end(this.#varint());
    this.#at += 1;
    const timeDelta = this.#varlong();
    const offsetDelta = this.#varint();
    const key = this.#range();
    const value = this.#range();
    const headers = this.#headers();
    // Skips fields from later format versions.
    if (this.#at > end) throw new RangeError('a fetched record exceeds its declared length');
    this.#at = end;
    return {
      offset: header.firstOffset + offsetDelta,
      timestamp: header.logTime ?? header.firstTime + timeDelta,
      key,
      value,
      headers,
      isControlRecord: header.isControl,
      batchContext: header.context,
    };
  }

  #end(length: number): number {
    const end = this.#at + length;
    if (length < 0 || end > this.#bytes.length) throw new RangeError('a fetched record extends past its batch');
    return end;
  }

  #varint(): number {
    const first = this.#bytes[this.#at++]!;
    if (first < 128) return (first >>> 1) ^ -(first & 1);
    let value = first & 127;
    for (let shift = 7; shift < 35; shift += 7) {
      const byte = this.#bytes[this.#at++]!;
      value |= (byte & 127) << shift;
      if (byte < 128) return (value >>> 1) ^ -(value & 1);
    }
    throw new RangeError('a fetched varint has more than five bytes');
  }

  /** Reads a zigzag varint of 64 bits. Exact up to 2^53. */
  #varlong(): number {
    let value = 0;
    for (let scale = 1; scale < 2 ** 70; scale *= 128) {
      const byte = this.#bytes[this.#at++]!;
      value += (byte & 127) * scale;
      if (byte < 128) return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
    }
    throw new RangeError('a fetched varlong has more than ten bytes');
  }

  /** Reads length-prefixed bytes. A length of -1 means null. */
  #range(): Buffer | null {
    const length = this.#varint();
    if (length === -1) return null;
    const start = this.#at;
    this.#at = this.#end(length);
    return this.#bytes.subarray(start, this.#at);
  }

  #headers(): FetchedHeaders {
    const count = this.#varint();
    if (count <= 0) return NO_HEADERS;
    let headers: FetchedHeaders = {};
    for (let header = 0; header < count; header++) {
      const name = this.#range()?.toString() ?? '';
      const value = this.#range();
      const before = Object.hasOwn(headers, name) ? headers[name] : undefined;
      const all = before === undefined ? value : Array.isArray(before) ? [...before, value] : [before, value];
      // A computed key, so that `__proto__` is an ordinary header.
      headers = { ...headers, [name]: all };
    }
    return headers;
  }
}

function readBatchHeader(batch: Buffer, attributes: number): BatchHeader {
  const isLogAppend = (attributes & IS_LOG_APPEND) !== 0;
  return {
    firstOffset: Number(batch.readBigInt64BE(AT.firstOffset)),
    firstTime: Number(batch.readBigInt64BE(AT.firstTime)),
    logTime: isLogAppend ? Number(batch.readBigInt64BE(AT.maxTime)) : null,
    count: batch.readInt32BE(AT.count),
    isControl: (attributes & IS_CONTROL) !== 0,
    context: {
      producerId: String(batch.readBigInt64BE(AT.producerId)),
      inTransaction: (attributes & IS_TRANSACTIONAL) !== 0,
    },
  };
}

async function readBatch(batch: Buffer, records: FetchedRecord[]): Promise<void> {
  const attributes = batch.readInt16BE(AT.attributes);
  const codec = codecOf(attributes);
  const header = readBatchHeader(batch, attributes);
  if (header.count <= 0) return;
  const reader =
    codec === null
      ? new RecordReader(batch, AT.records)
      : new RecordReader(await codec.decompress(batch.subarray(AT.records)), 0);
  for (let index = 0; index < header.count; index++) records.push(reader.record(header));
}

function readMark(batch: Buffer): LogMark {
  return {
    base: Number(batch.readBigInt64BE(AT.firstOffset)),
    epoch: batch.readInt32BE(AT.leaderEpoch),
    crc: batch.readUInt32BE(AT.crc),
  };
}

/** Replaces `filter`. Offsets increase, so a condition on offsets removes only leading records. */
function dropLeading(this: FetchedRecord[], isWithin: (record: FetchedRecord) => boolean): FetchedRecord[] {
  const first = this.findIndex((record) => isWithin(record));
  return first === -1 ? [] : this.slice(first);
}

/**
 * Decodes all complete batches, including markers and aborted records. Replaces the list's `filter`, which kafkajs uses
 * only to drop records before the requested offset and which costs two objects per record.
 * @throws RangeError if a complete batch is invalid
 */
export async function readRecords(batches: Buffer): Promise<FetchedRecords> {
  const records: FetchedRecord[] = [];
  const marks: LogMark[] = [];
  let start = 0;
  while (start + AT.records <= batches.length) {
    const end = start + LENGTH_END + batches.readInt32BE(start + AT.length);
    if (end > batches.length) break;
    if (end < start + AT.records) throw new RangeError('a fetched batch is shorter than its header');
    const batch = batches.subarray(start, end);
    marks.push(readMark(batch));
    await readBatch(batch, records);
    start = end;
  }
  // A copy of the list has the standard `filter`.
  return Object.defineProperties(records, { filter: { value: dropLeading }, batches: { value: marks } });
}

export function toStreamRecord(at: { topic: string; partition: number }, fetched: FetchedRecord): StreamRecord {
  return {
    topic: at.topic,
    partition: at.partition,
    offset: fetched.offset,
    timestampMs: fetched.timestamp,
    key: fetched.key,
    value: fetched.value,
    headers: fetched.headers as StreamRecord['headers'],
  };
}

const originalPath = require.resolve('kafkajs/src/protocol/requests/fetch/v4/decodeMessages');
const decodeOlderFormat: (decoder: FetchDecoder) => Promise<readonly unknown[]> = require(originalPath);
const WireDecoder: new (bytes: Buffer) => FetchDecoder = require('kafkajs/src/protocol/decoder');

const isDecodedHere = (range: Buffer) => range.length >= AT.records && range[AT.magic] === BATCH_MAGIC;

export async function readFetched(range: Buffer): Promise<readonly unknown[]> {
  if (isDecodedHere(range)) return await readRecords(range);
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeInt32BE(range.length);
  return await decodeOlderFormat(new WireDecoder(Buffer.concat([length, range])));
}

async function decodeMessages(decoder: FetchDecoder): Promise<readonly unknown[]> {
  const { buffer, offset } = decoder;
  const start = offset + LENGTH_BYTES;
  const end = start + buffer.readInt32BE(offset);
  const range = buffer.subarray(start, Math.max(start, end));
  if (end > buffer.length || !isDecodedHere(range)) return decodeOlderFormat(decoder);
  decoder.offset = end;
  return readRecords(range);
}

require.cache[originalPath]!.exports = decodeMessages;
