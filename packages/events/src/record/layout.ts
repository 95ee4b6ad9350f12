import { AvroWriter } from './avro-writer.ts';
import type { RecordEnvelope } from './envelope.ts';

/** Bytes of one identity key. */
export const KEY_BYTES = 16;

/**
 * What a record holds beside its strings, at most: frame 5, two longs of 10, six fixed of 16, a boolean, an optional
 * double of 9, and a length of at most 5 bytes for each of 30 strings.
 */
const OVERHEAD_BYTES_MAX = 5 + 2 * 10 + 6 * 16 + 1 + 9 + 30 * 5;

/** The parts of a record that are the same for every message of a request, encoded once. */
export interface EncodedEnvelope {
  /** Frame and environmentId. */
  head: Buffer;
  /** receivedAt. */
  receivedAt: Buffer;
  /** traceId. */
  tail: Buffer;
  /** Environment id, raw, then room for the owner's key. */
  recordKey: Buffer;
  /** Bytes of a record beside the strings of its message, at most. */
  bytesMax: number;
}

export function encodeEnvelope(envelope: RecordEnvelope): EncodedEnvelope {
  const environment = Buffer.from(envelope.environmentId);
  const bytesMax = OVERHEAD_BYTES_MAX + environment.length + Buffer.byteLength(envelope.traceId);
  const writer = new AvroWriter(bytesMax);
  const encode = (write: () => void): Buffer => {
    writer.reserve(0);
    write();
    return writer.finish();
  };
  return {
    head: encode(() => {
      writer.frame(envelope.schemaId);
      writer.text(envelope.environmentId);
    }),
    receivedAt: encode(() => writer.long(envelope.receivedAt)),
    tail: encode(() => writer.text(envelope.traceId)),
    recordKey: Buffer.concat([environment, Buffer.alloc(KEY_BYTES)]),
    bytesMax,
  };
}

/** Record key of the owner: environment id and identity key, so that one person's messages keep their order. */
export function recordKeyOf(envelope: EncodedEnvelope, ownerKey: Buffer): Buffer {
  const key = Buffer.from(envelope.recordKey);
  key.set(ownerKey, key.length - KEY_BYTES);
  return key;
}
