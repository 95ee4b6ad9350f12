import type { IncomingMessage } from 'node:http';
import { BATCH_BYTES_MAX, frameRecord, type RejectionRecord, rejectionCodec } from '@playline/contracts';
import type { Closable, Logger, Metrics } from '@playline/runtime';
import { waitAtMost } from '@playline/stores';
import type { OutgoingRecord, Producer, SchemaRegistry } from '@playline/stream';
import { bytesOf } from './publish.ts';
import { encoderSchemaOf, resolveSchemaIds } from './schema-ids.ts';

/** The errors of all rejected messages in a batch. */
export interface BatchRejections {
  readonly records: readonly RejectionRecord[];
  /** The number of errors beyond the maximum per batch, which are only counted. */
  readonly omitted: number;
}

/**
 * Publishes the rejections of a batch after the response. Returns immediately and never throws.
 * @param logBytesMax maximum size of the rejections on the log
 */
export type PublishRejections = (rejections: BatchRejections, logBytesMax: number) => void;

export interface PublishRejectionsOptions {
  /** Not used for accepted messages, because a rejection topic without a leader would delay them. */
  producer: Pick<Producer, 'send'>;
  topic: string;
  /** Returns null until the registry has returned the id. */
  schemaId: () => number | null;
  metrics: Metrics;
  bytesMax?: number;
}

/** The size of one large batch, enough for more than a thousand errors. */
const BYTES_MAX = BATCH_BYTES_MAX;
/** Memory for objects in this module and in the producer, rounded up. */
const RECORD_OVERHEAD_BYTES = 512;

/**
 * Publishes on a best-effort basis: records that exceed a limit or are not acknowledged are dropped and counted. A
 * record counts towards the memory limit until the producer settles it.
 */
export function createPublishRejections(options: PublishRejectionsOptions): PublishRejections {
  const { producer, topic, schemaId, metrics, bytesMax = BYTES_MAX } = options;
  const dropped = metrics.counter('playline_gateway_rejections_dropped_total', 'Rejection errors not published', [
    'reason',
  ]);
  const waiting = metrics.gauge(
    'playline_gateway_rejections_waiting_bytes',
    'Bytes of rejections not yet acknowledged',
  );
  let pendingBytes = 0;
  const addPending = (bytes: number) => {
    pendingBytes += bytes;
    waiting.set(pendingBytes);
  };
  const drop = (reason: 'batch' | 'budget' | 'schema' | 'fault', count: number) => {
    if (count > 0) dropped.inc({ reason }, count);
  };

  const send = (records: readonly OutgoingRecord[], bytes: number) => {
    let isPending = true;
    const settle = (fault: unknown) => {
      if (!isPending) return;
      isPending = false;
      addPending(-bytes);
      if (fault !== null) drop('fault', records.length);
    };
    addPending(bytes);
    try {
      producer.send(records, settle);
    } catch (error) {
      settle(error);
    }
  };

  /** Sends as many records as the limits allow, in order. */
  const publish: PublishRejections = ({ records, omitted }, logBytesMax) => {
    drop('batch', omitted);
    const id = schemaId();
    if (id === null) return drop('schema', records.length);
    const selected: OutgoingRecord[] = [];
    let bytes = 0;
    let logBytes = BATCH_HEAD_BYTES;
    for (const record of records) {
      const key = Buffer.from(record.environmentId);
      const value = frameRecord(id, rejectionCodec.encode(record));
      const size = value.length + key.length;
      logBytes += size + RECORD_FRAME_BYTES;
      if (logBytes > logBytesMax || pendingBytes + bytes + size + RECORD_OVERHEAD_BYTES > bytesMax) break;
      selected.push({ topic, key, value });
      bytes += size + RECORD_OVERHEAD_BYTES;
    }
    drop(logBytes > logBytesMax ? 'batch' : 'budget', records.length - selected.length);
    if (selected.length > 0) send(copyToDedicatedBuffer(selected), bytes);
  };
  return (batch, logBytesMax) => {
    try {
      publish(batch, logBytesMax);
    } catch {
      // A record that cannot be encoded is a bug, but the client already has the response.
      drop('fault', batch.records.length);
    }
  };
}

/** Copies the records out of Node's buffer pool, because a slice would keep kilobytes of the pool in memory. */
function copyToDedicatedBuffer(records: readonly OutgoingRecord[]): OutgoingRecord[] {
  const target = Buffer.allocUnsafeSlow(records.reduce((sum, { key, value }) => sum + key!.length + value.length, 0));
  let end = 0;
  const copy = (bytes: Buffer) => {
    const start = end;
    end += bytes.copy(target, start);
    return target.subarray(start, end);
  };
  return records.map((record) => ({ ...record, key: copy(record.key!), value: copy(record.value) }));
}

/**
 * Maximum log bytes per received byte (request head and decompressed body). Real batches need less than one. Without
 * this limit, a body with a hundred numbers in 200 bytes would need 41.
 */
const AMPLIFICATION_MAX = 3;
/** Attributes and varints of a record in Kafka's record format v2, rounded up. */
const RECORD_FRAME_BYTES = 12;
/** Size of a record batch header. */
const BATCH_HEAD_BYTES = 61;

/** Returns the maximum log bytes for the rejections of a batch, after subtracting its accepted messages. */
export function rejectionLogBytesMax(
  request: IncomingMessage,
  bodyBytes: number,
  accepted: readonly OutgoingRecord[],
): number {
  // In the worst case, each record is sent in a separate record batch.
  const messageBytes = bytesOf(accepted) + accepted.length * (RECORD_FRAME_BYTES + BATCH_HEAD_BYTES);
  return AMPLIFICATION_MAX * (headBytesOf(request) + bodyBytes) - messageBytes;
}

/** A colon, a space and a line break. */
const LINE_FRAME_BYTES = 4;
/** Two spaces, `HTTP/1.1` and a line break. */
const FIRST_LINE_FRAME_BYTES = 12;

/** Returns the size of the request line and headers. */
function headBytesOf({ method = '', url = '', rawHeaders }: IncomingMessage): number {
  const lines = rawHeaders.reduce((sum, text) => sum + text.length, 0) + (rawHeaders.length / 2) * LINE_FRAME_BYTES;
  return method.length + url.length + FIRST_LINE_FRAME_BYTES + lines + '\r\n'.length;
}

/** The rest of the drain time is reserved for accepted messages. */
const CLOSE_MAX_MS = 1_000;

/**
 * Opens the publisher. Its schema id is fetched separately, so that the gateway can be ready without the id.
 * @param options.producer is closed together with the publisher
 */
export function openRejections(options: {
  producer: Producer;
  topic: string;
  registry: Pick<SchemaRegistry, 'idOf'>;
  metrics: Metrics;
  logger: Logger;
}): Closable & { readonly publish: PublishRejections } {
  const { producer, topic, registry, metrics, logger } = options;
  const schema = resolveSchemaIds(registry, { rejections: encoderSchemaOf(topic, rejectionCodec) }, logger);
  const schemaId = () => schema.current()?.rejections ?? null;
  return {
    publish: createPublishRejections({ producer, topic, schemaId, metrics }),
    close: async () => {
      await schema.close();
      await waitAtMost(CLOSE_MAX_MS, Promise.resolve(producer.close()), () => {});
    },
  };
}
