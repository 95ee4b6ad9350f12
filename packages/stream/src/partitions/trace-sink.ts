import type { TraceSpan, Tracing } from '@playline/runtime';
import type { BlockBuilder, BlockSink, StreamRecord } from '../ports.ts';

const NO_HEADERS: Readonly<Record<string, string>> = {};

/** Returns the headers with which a record continues the open span of its trace. */
export function toTraceHeaders(tracing: Pick<Tracing, 'find'> | null, { traceId }: { readonly traceId: string }) {
  const span = tracing?.find(traceId);
  return span ? { traceparent: span.traceparent } : NO_HEADERS;
}

/** Limits the memory of a block. Further traces of the block end before this step. */
const SPANS_PER_BLOCK_MAX = 100;

/**
 * Wraps a sink so that each recorded trace has a span from the first of its records in a block until the block's rows
 * are stored. Without tracing, returns the sink unchanged.
 */
export function traceSink(sink: BlockSink, tracing: Pick<Tracing, 'resume'> | null): BlockSink {
  if (tracing === null) return sink;
  return {
    transformVersion: sink.transformVersion,
    openBlock: (topic, partition) => traceBlock(sink.openBlock(topic, partition), tracing),
  };
}

interface BlockSpan {
  readonly span: TraceSpan;
  records: number;
}

function traceBlock(block: BlockBuilder, tracing: Pick<Tracing, 'resume'>): BlockBuilder {
  const spans = new Map<string, BlockSpan>();
  const trace = (record: StreamRecord) => {
    const { traceparent } = record.headers;
    if (!isSampled(traceparent)) return;
    const key = String(traceparent);
    const known = spans.get(key);
    if (known !== undefined) known.records++;
    else if (spans.size < SPANS_PER_BLOCK_MAX) {
      const span = tracing.resume(toSpanStart(record), key);
      if (span !== null) spans.set(key, { span, records: 1 });
    }
  };
  return {
    get rows() {
      return block.rows;
    },
    get bytes() {
      return block.bytes;
    },
    add(record) {
      const outcome = block.add(record);
      if (outcome.kind === 'ok') trace(record);
      return outcome;
    },
    ...(block.settle && { settle: block.settle.bind(block) }),
    async write(name, signal) {
      await block.write(name, signal);
      for (const { span, records } of spans.values()) {
        span.set({ 'messaging.batch.message_count': records });
        span.end();
      }
    },
    release() {
      // Without effect after the block was written.
      for (const { span } of spans.values()) span.end(new Error('the block was not written'));
      block.release();
    },
  };
}

/** Compares only the last character, because most records belong to traces that are not recorded. */
function isSampled(traceparent: Buffer | string | undefined): boolean {
  if (typeof traceparent === 'string') return traceparent.endsWith('1');
  return traceparent?.at(-1) === 0x31;
}

function toSpanStart({ topic, partition, offset }: StreamRecord) {
  const attributes = {
    'messaging.system': 'kafka',
    'messaging.destination.name': topic,
    'messaging.destination.partition.id': String(partition),
    'messaging.kafka.offset': offset,
  };
  return { name: `store ${topic}`, kind: 'consumer', attributes } as const;
}
