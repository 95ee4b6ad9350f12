import {
  type Attributes,
  SpanKind as OtelKind,
  ROOT_CONTEXT,
  type Span,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  RandomIdGenerator,
  type ReadableSpan,
  type SpanExporter,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { waitAtMost } from '@playline/stores';
import type { Logger } from './logger.ts';
import type { SpanKind, SpanStart, TraceSpan, Tracing } from './tracing.ts';
import { VERSION } from './version.ts';

const KINDS: Readonly<Record<SpanKind, OtelKind>> = {
  server: OtelKind.SERVER,
  producer: OtelKind.PRODUCER,
  consumer: OtelKind.CONSUMER,
  internal: OtelKind.INTERNAL,
};

/** Spans that wait for a store for hours. The oldest span ends when there are more. */
const OPEN_SPANS_MAX = 10_000;
/** Attributes contain paths, codes and counts. */
const ATTRIBUTE_CHARACTERS_MAX = 200;
const WARN_EVERY_MS = 60_000;
const NOT_EXPORTED = 'traces were not exported';
/** An unavailable collector must not delay a shutdown. */
const CLOSE_MAX_MS = 2_000;

export function openOtlpTracing(options: {
  readonly service: string;
  readonly endpoint: string;
  /** Share of new traces that are recorded. */
  readonly ratio: number;
  readonly logger: Pick<Logger, 'warn'>;
}): Tracing {
  const { service, endpoint, ratio, logger } = options;
  const random = new RandomIdGenerator();
  // The SDK generates the id of a trace without a parent, but responses already contain that id.
  let nextTraceId = '';
  const exporter = warnOnFailure(new OTLPTraceExporter({ url: `${endpoint}/v1/traces` }), logger);
  const provider = new TracerProvider({
    // Spans are created only for recorded traces. The default depends on the environment.
    sampler: new AlwaysOnSampler(),
    resource: resourceFromAttributes({ 'service.name': service, 'service.version': VERSION }),
    idGenerator: {
      generateTraceId: () => nextTraceId || random.generateTraceId(),
      generateSpanId: () => random.generateSpanId(),
    },
    spanLimits: { attributeValueLengthLimit: ATTRIBUTE_CHARACTERS_MAX },
    spanProcessors: [new BatchSpanProcessor({ exporter })],
  });
  const tracer = provider.getTracer('playline', VERSION);
  const open = new Map<string, OpenSpan>();
  const begin = ({ name, kind, attributes = {} }: SpanStart, parent = ROOT_CONTEXT): TraceSpan => {
    const started = new OpenSpan(tracer.startSpan(name, { kind: KINDS[kind], attributes }, parent), (span) => {
      if (open.get(span.traceId) === span) open.delete(span.traceId);
    });
    open.set(started.traceId, started);
    if (open.size > OPEN_SPANS_MAX) open.values().next().value?.end();
    return started;
  };
  return {
    sample: () => Math.random() < ratio,
    start(span, traceparent) {
      nextTraceId = traceparent === undefined ? '' : traceIdOf(traceparent);
      return begin(span);
    },
    resume(span, traceparent) {
      const text = String(traceparent ?? '');
      if (!SAMPLED.test(text)) return null;
      const spanContext = { traceId: traceIdOf(text), spanId: text.slice(36, 52), isRemote: true };
      return begin(span, trace.setSpanContext(ROOT_CONTEXT, { ...spanContext, traceFlags: TraceFlags.SAMPLED }));
    },
    find: (traceId) => open.get(traceId) ?? null,
    async close() {
      for (const span of open.values()) span.end();
      const exported = provider.shutdown().catch((error) => logger.warn({ error }, NOT_EXPORTED));
      await waitAtMost(CLOSE_MAX_MS, exported, () => logger.warn(NOT_EXPORTED));
    },
  };
}

/** A version 00 `traceparent` of a recorded trace. */
const SAMPLED = /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/;
const traceIdOf = (traceparent: string) => traceparent.slice(3, 35);

class OpenSpan implements TraceSpan {
  readonly traceId: string;
  readonly traceparent: string;
  readonly #span: Span;
  readonly #onEnd: (span: OpenSpan) => void;

  constructor(span: Span, onEnd: (span: OpenSpan) => void) {
    const { traceId, spanId } = span.spanContext();
    this.traceId = traceId;
    this.traceparent = `00-${traceId}-${spanId}-01`;
    this.#span = span;
    this.#onEnd = onEnd;
  }

  set(attributes: Attributes): void {
    this.#span.setAttributes(attributes);
  }

  rename(name: string): void {
    this.#span.updateName(name);
  }

  end(error?: unknown): void {
    if (!this.#span.isRecording()) return;
    if (error !== undefined) {
      // The message is omitted, because it can quote the request or a store's address.
      this.#span.setAttribute('error.type', error instanceof Error ? error.name : typeof error);
      this.#span.setStatus({ code: SpanStatusCode.ERROR });
    }
    this.#span.end();
    this.#onEnd(this);
  }
}

/** Logs failed exports, at most once a minute. Their spans are lost. */
function warnOnFailure(exporter: SpanExporter, logger: Pick<Logger, 'warn'>): SpanExporter {
  let warnedMs = Number.NEGATIVE_INFINITY;
  return {
    export: (spans: ReadableSpan[], done) =>
      exporter.export(spans, (result) => {
        if (result.error !== undefined && performance.now() - warnedMs > WARN_EVERY_MS) {
          warnedMs = performance.now();
          logger.warn({ error: result.error }, NOT_EXPORTED);
        }
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  };
}
