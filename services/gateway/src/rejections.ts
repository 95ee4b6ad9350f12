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
  /** Number of errors beyond the most that one batch may report. They are only counted. */
  readonly omitted: number;
}

/**
 * Publishes the rejections of an answered batch. Returns at once and never throws, because ingest must not depend on
 * it.
 * @param logBytesMax bytes that they may take on the log; errors beyond it are dropped
 */
export type PublishRejections = (rejections: BatchRejections, logBytesMax: number) => void;

export interface PublishRejectionsOptions {
  /** Not the producer of accepted messages, which a rejection topic without a leader must not delay. */
  producer: Pick<Producer, 'send'>;
  topic: string;
  /** Null until the registry has returned it. */
  schemaId: () => number | null;
  metrics: Metrics;
  bytesMax?: number;
}

/** As much as one large batch: a sixteenth of the room for accepted messages, enough for over a thousand errors. */
const BYTES_MAX = BATCH_BYTES_MAX;
/** Memory of a waiting record besides its bytes: its objects here and in the producer, rounded up. */
const RECORD_OVERHEAD_BYTES = 512;

/**
 * Builds the publisher of rejections. It is best effort: records without room, or not acknowledged, are dropped and
 * counted. A record counts against the bound until the producer settles it, so an outage costs at most `bytesMax`.
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

  /** Hands records to the producer. They count against the bound until it settles them, with or without success. */
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

  const publish: PublishRejections = ({ records, omitted }, logBytesMax) => {
    drop('batch', omitted);
    const id = schemaId();
    if (id === null) return drop('schema', records.length);
    const taken = encodeWithin({ memory: bytesMax - held, log: logBytesMax }, records, { topic, schemaId: id });
    drop(taken.isLogFull ? 'batch' : 'budget', records.length - taken.records.length);
    if (taken.records.length > 0) send(taken.records, taken.bytes);
  };
  return (batch, logBytesMax) => {
    try {
      publish(batch, logBytesMax);
    } catch {
      // A record that cannot be encoded is a bug of the gateway. The batch has been answered already.
      drop('fault', batch.records.length);
    }
  };
}

interface RejectionLimits {
  /** Bytes left in memory. */
  memory: number;
  /** Bytes that the log may take for this batch. */
  log: number;
}

/** Encodes the first records that fit, and at most one more, so that drops stay cheap under a flood. */
function encodeWithin(
  room: RejectionLimits,
  records: readonly RejectionRecord[],
  { topic, schemaId }: { topic: string; schemaId: number },
): { records: OutgoingRecord[]; bytes: number; isLogFull: boolean } {
  const taken: OutgoingRecord[] = [];
  let bytes = 0;
  let logBytes = BATCH_HEAD_BYTES;
  for (const record of records) {
    const key = Buffer.from(record.environmentId);
    const value = frameRecord(schemaId, rejectionCodec.encode(record));
    const size = value.length + key.length;
    logBytes += size + RECORD_FRAME_BYTES;
    if (logBytes > room.log || bytes + size + RECORD_OVERHEAD_BYTES > room.memory) break;
    taken.push({ topic, key, value });
    bytes += size + RECORD_OVERHEAD_BYTES;
  }
  return { records: copyToOwnBuffer(taken), bytes, isLogFull: logBytes > room.log };
}

/** Copies the bytes into a buffer of their own, because a slice of Node's shared pool keeps kilobytes alive. */
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
 * Most bytes on the log for each byte of a batch received (head and decompressed body). Batches of client libraries
 * take less than one. Without the bound, a batch of a hundred numbers in 200 bytes would take 41, because each is an
 * error.
 */
const AMPLIFICATION_MAX = 3;
/** Frame of a record in Kafka's format 2, rounded up: attributes and the varints of length, times, key and value. */
const RECORD_FRAME_BYTES = 12;
/** Head of a record batch in the same format. */
const BATCH_HEAD_BYTES = 61;

/** Bytes that the rejections of a batch may take on the log, besides its accepted messages. */
export function rejectionLogBytesMax(
  request: IncomingMessage,
  bodyBytes: number,
  accepted: readonly OutgoingRecord[],
): number {
  // In the worst case each has a record batch of its own.
  const taken = bytesOf(accepted) + accepted.length * (RECORD_FRAME_BYTES + BATCH_HEAD_BYTES);
  return AMPLIFICATION_MAX * (headBytesOf(request) + bodyBytes) - taken;
}

/** Colon, blank and the end of the line. */
const LINE_FRAME_BYTES = 4;
/** Two blanks, `HTTP/1.1` and the end of the line. */
const FIRST_LINE_FRAME_BYTES = 12;

/** Bytes of a request before its body. */
function headBytesOf({ method = '', url = '', rawHeaders }: IncomingMessage): number {
  const lines = rawHeaders.reduce((sum, text) => sum + text.length, 0) + (rawHeaders.length / 2) * LINE_FRAME_BYTES;
  return method.length + url.length + FIRST_LINE_FRAME_BYTES + lines + '\r\n'.length;
}

/** A healthy flush takes milliseconds. The rest of the drain's time is for accepted messages. */
const CLOSE_MAX_MS = 1_000;

/**
 * Opens the publisher of rejections. Its schema id is requested apart from the others, so the gateway can be ready
 * without it. Closes the producer.
 * @param options.producer of rejections alone
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
