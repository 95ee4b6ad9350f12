import { DynamicBuffer } from '@platformatic/dynamic-buffer';
import type { PublishedRecord } from '../../ports.ts';
import { crc32c } from '../broker-client.ts';
import { BATCH_HEADER as AT, BATCH_MAGIC } from '../protocol.ts';

export const BATCH_HEADER_BYTES: number = AT.records;
/** Maximum framing bytes per record: six varints of up to five bytes each, and the attributes. */
const RECORD_FRAME_BYTES_MAX = 31;
/** Maximum framing bytes per header: two varints. */
const HEADER_FRAME_BYTES_MAX = 10;
const VARINT_BYTES_MAX = 5;
/** Up to this size, a loop is faster than a copy call. */
const LOOP_COPY_BYTES_MAX = 40;

/** Identifies a batch. Brokers drop batches with sequence numbers that they already received from the producer. */
export interface BatchIdentity {
  producerId: bigint;
  producerEpoch: number;
  sequence: number;
}

type Headers = PublishedRecord['headers'];

function headersBytesMax(headers: Headers): number {
  let bytes = 0;
  for (const name in headers) {
    const value = headers[name]!;
    bytes += HEADER_FRAME_BYTES_MAX + 3 * name.length + (typeof value === 'string' ? 3 * value.length : value.length);
  }
  return bytes;
}

/** Computes upper bounds of record sizes. Caches header sizes, because consecutive records usually share headers. */
export class RecordSizes {
  #headers: Headers;
  #headersBytesMax = 0;

  bytesMaxOf({ key, value, headers }: PublishedRecord): number {
    if (headers !== this.#headers) {
      this.#headers = headers;
      this.#headersBytesMax = headersBytesMax(headers);
    }
    return (
      RECORD_FRAME_BYTES_MAX +
      (key === null ? 0 : key.length) +
      (value === null ? 0 : value.length) +
      this.#headersBytesMax
    );
  }
}

/** Returns the varint size of a non-negative number `n`, which zigzag doubles. */
function varintBytes(n: number): number {
  if (n < 64) return 1;
  if (n < 8_192) return 2;
  if (n < 1_048_576) return 3;
  return n < 134_217_728 ? 4 : 5;
}

function writeVarint(target: Buffer, at: number, n: number): number {
  let rest = n * 2;
  let offset = at;
  while (rest > 127) {
    target[offset++] = (rest & 127) | 128;
    rest >>>= 7;
  }
  target[offset++] = rest;
  return offset;
}

const VARINT_MINUS_ONE = 1;

function encodeHeaders(headers: Headers): Buffer {
  const names = headers === undefined ? [] : Object.keys(headers);
  const target = Buffer.allocUnsafe(VARINT_BYTES_MAX + headersBytesMax(headers));
  let offset = writeVarint(target, 0, names.length);
  for (const name of names) {
    const value = headers![name]!;
    offset = writeVarint(target, offset, Buffer.byteLength(name));
    offset += target.write(name, offset);
    offset = writeVarint(target, offset, typeof value === 'string' ? Buffer.byteLength(value) : value.length);
    offset += typeof value === 'string' ? target.write(value, offset) : value.copy(target, offset);
  }
  return target.subarray(0, offset);
}

/** Copies all of `source`. @returns the position after the copy */
function copyBytes(target: Buffer, at: number, source: Uint8Array): number {
  const length = source.length;
  if (length > LOOP_COPY_BYTES_MAX) target.set(source, at);
  else for (let i = 0; i < length; i++) target[at + i] = source[i]!;
  return at + length;
}

/** Writes consecutive records. `end` is the position after the last record. */
class RecordWriter {
  end: number;
  readonly #target: Buffer;
  /** Cached: the encoded headers of the previous record. */
  #headers: Headers;
  #headersBytes = encodeHeaders(undefined);

  constructor(target: Buffer, at: number) {
    this.#target = target;
    this.end = at;
  }

  write({ key, value, headers }: PublishedRecord, index: number): void {
    if (headers !== this.#headers) {
      this.#headers = headers;
      this.#headersBytes = encodeHeaders(headers);
    }
    const target = this.#target;
    const keyBytes = key === null ? 1 : varintBytes(key.length) + key.length;
    const valueBytes = value === null ? 1 : varintBytes(value.length) + value.length;
    // The attributes and the timestamp delta take one zero byte each.
    const body = 2 + varintBytes(index) + keyBytes + valueBytes + this.#headersBytes.length;
    let offset = writeVarint(target, this.end, body);
    target[offset++] = 0;
    target[offset++] = 0;
    offset = writeVarint(target, offset, index);
    if (key === null) target[offset++] = VARINT_MINUS_ONE;
    else offset = copyBytes(target, writeVarint(target, offset, key.length), key);
    if (value === null) target[offset++] = VARINT_MINUS_ONE;
    else offset = copyBytes(target, writeVarint(target, offset, value.length), value);
    this.end = copyBytes(target, offset, this.#headersBytes);
  }
}

/**
 * Writes an uncompressed record batch without the fields that `stampBatch` sets.
 * @param target must have space after `at` for `BATCH_HEADER_BYTES` plus `bytesMaxOf` of every record
 * @returns the end of the batch
 */
export function encodeBatch(target: Buffer, at: number, records: readonly PublishedRecord[]): number {
  const writer = new RecordWriter(target, at + BATCH_HEADER_BYTES);
  for (let index = 0; index < records.length; index++) writer.write(records[index]!, index);
  const { end } = writer;
  target.writeBigInt64BE(0n, at);
  target.writeInt32BE(end - at - AT.leaderEpoch, at + AT.length);
  target.writeInt32BE(-1, at + AT.leaderEpoch);
  target[at + AT.magic] = BATCH_MAGIC;
  target.writeInt16BE(0, at + AT.attributes);
  target.writeInt32BE(records.length - 1, at + AT.lastOffsetDelta);
  const now = BigInt(Date.now());
  target.writeBigInt64BE(now, at + AT.firstTime);
  target.writeBigInt64BE(now, at + AT.maxTime);
  target.writeInt32BE(records.length, at + AT.count);
  return end;
}

/** Sets the producer identity and the checksum. Retries resend the same bytes. */
export function stampBatch(batch: Buffer, identity: BatchIdentity): void {
  batch.writeBigInt64BE(identity.producerId, AT.producerId);
  batch.writeInt16BE(identity.producerEpoch, AT.producerEpoch);
  batch.writeInt32BE(identity.sequence, AT.sequence);
  // Wrapped, because the client's checksum function would copy any other type.
  batch.writeUInt32BE(crc32c(new DynamicBuffer(batch.subarray(AT.attributes))), AT.crc);
}
