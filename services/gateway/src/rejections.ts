import type { IncomingMessage } from 'node:http';
import { BATCH_BYTES_MAX, frameRecord, type RejectionRecord, rejectionCodec } from '@playline/contracts';
import type { Closable, Logger, Metrics } from '@playline/runtime';
import { waitAtMost } from '@playline/stores';
import type { OutgoingRecord, Producer, SchemaRegistry } from '@playline/stream';
import { bytesOf } from './publish.ts';
import { openSchemaIds, writtenSchemaOf } from './schema-ids.ts';

/** The errors of the rejected messages of one batch. */
export interface BatchRejections {
  readonly records: readonly RejectionRecord[];
  /** Errors beyond the most that one batch may report; only counted. */
  readonly omitted: number;
}

/**
 * Publishes rejections of an answered batch. Returns immediately and never throws.
 * @param logBytesMax bytes that they may take on the log
 */
export type PublishRejections = (rejections: BatchRejections, logBytesMax: number) => void;

export interface PublishRejectionsOptions {
  /** Not the producer of accepted messages: a rejection topic without a leader must not delay it. */
  producer: Pick<Producer, 'send'>;
  topic: string;
  /** Null until the registry has answered. */
  schemaId: () => number | null;
  metrics: Metrics;
  bytesMax?: number;
}

/** One large batch, enough for over a thousand errors. */
const BYTES_MAX = BATCH_BYTES_MAX;
/** Objects here and in the producer, rounded up. */
const RECORD_OVERHEAD_BYTES = 512;

/**
 * Best effort: records beyond the bounds, or not acknowledged, are dropped and counted. A record counts until the
 * producer settles it.
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
  let held = 0;
  const hold = (bytes: number) => {
    held += bytes;
    waiting.set(held);
  };
  const drop = (reason: 'batch' | 'budget' | 'schema' | 'fault', count: number) => {
    if (count > 0) dropped.inc({ reason }, count);
  };

  const send = (records: readonly OutgoingRecord[], bytes: number) => {
    let open = true;
    const settle = (fault: unknown) => {
      if (!open) return;
      open = false;
      hold(-bytes);
      if (fault !== null) drop('fault', records.length);
    };
    hold(bytes);
    try {
      producer.send(records, settle);
    } catch (error) {
      settle(error);
    }
  };

  /** Sends the first records that fit. */
  const publish: PublishRejections = ({ records, omitted }, logBytesMax) => {
    drop('batch', omitted);
    const id = schemaId();
    if (id === null) return drop('schema', records.length);
    const taken: OutgoingRecord[] = [];
    let bytes = 0;
    let logBytes = BATCH_HEAD_BYTES;
    for (const record of records) {
      const key = Buffer.from(record.environmentId);
      const value = frameRecord(id, rejectionCodec.encode(record));
      const size = value.length + key.length;
      logBytes += size + RECORD_FRAME_BYTES;
      if (logBytes > logBytesMax || held + bytes + size + RECORD_OVERHEAD_BYTES > bytesMax) break;
      taken.push({ topic, key, value });
      bytes += size + RECORD_OVERHEAD_BYTES;
    }
    drop(logBytes > logBytesMax ? 'batch' : 'budget', records.length - taken.length);
    if (taken.length > 0) send(copyToOwnBuffer(taken), bytes);
  };
  return (batch, logBytesMax) => {
    try {
      publish(batch, logBytesMax);
    } catch {
      // A record that cannot be encoded is a bug; the batch is answered already.
      drop('fault', batch.records.length);
    }
  };
}

/** A slice of Node's shared pool would keep kilobytes alive. */
function copyToOwnBuffer(records: readonly OutgoingRecord[]): OutgoingRecord[] {
  const own = Buffer.allocUnsafeSlow(records.reduce((sum, { key, value }) => sum + key!.length + value.length, 0));
  let end = 0;
  const move = (bytes: Buffer) => {
    const start = end;
    end += bytes.copy(own, start);
    return own.subarray(start, end);
  };
  return records.map((record) => ({ ...record, key: move(record.key!), value: move(record.value) }));
}

/**
 * Most bytes on the log for each received byte (head and decompressed body). Batches of clients take less than one; a
 * hundred numbers in 200 bytes would take 41.
 */
const AMPLIFICATION_MAX = 3;
/** Kafka's format 2, rounded up: attributes and varints of a record. */
const RECORD_FRAME_BYTES = 12;
/** Header of a record batch. */
const BATCH_HEAD_BYTES = 61;

/** Bytes that the rejections of a batch may take on the log, besides its accepted messages. */
export function rejectionLogBytesMax(
  request: IncomingMessage,
  bodyBytes: number,
  accepted: readonly OutgoingRecord[],
): number {
  // In the worst case each record has its own batch.
  const taken = bytesOf(accepted) + accepted.length * (RECORD_FRAME_BYTES + BATCH_HEAD_BYTES);
  return AMPLIFICATION_MAX * (headBytesOf(request) + bodyBytes) - taken;
}

/** Colon, blank and line end. */
const LINE_FRAME_BYTES = 4;
/** Two blanks, `HTTP/1.1` and line end. */
const FIRST_LINE_FRAME_BYTES = 12;

/** Bytes before the body. */
function headBytesOf({ method = '', url = '', rawHeaders }: IncomingMessage): number {
  const lines = rawHeaders.reduce((sum, text) => sum + text.length, 0) + (rawHeaders.length / 2) * LINE_FRAME_BYTES;
  return method.length + url.length + FIRST_LINE_FRAME_BYTES + lines + '\r\n'.length;
}

/** The rest of the drain's time is for accepted messages. */
const CLOSE_MAX_MS = 1_000;

/**
 * Opens the publisher. Its schema id is fetched apart from the others, so the gateway can be ready without it.
 * @param options.producer closed by this
 */
export function openRejections(options: {
  producer: Producer;
  topic: string;
  registry: Pick<SchemaRegistry, 'idOf'>;
  metrics: Metrics;
  logger: Logger;
}): Closable & { readonly publish: PublishRejections } {
  const { producer, topic, registry, metrics, logger } = options;
  const schema = openSchemaIds(registry, { rejections: writtenSchemaOf(topic, rejectionCodec) }, logger);
  const schemaId = () => schema.current()?.rejections ?? null;
  return {
    publish: createPublishRejections({ producer, topic, schemaId, metrics }),
    close: async () => {
      await schema.close();
      await waitAtMost(CLOSE_MAX_MS, Promise.resolve(producer.close()), () => {});
    },
  };
}
