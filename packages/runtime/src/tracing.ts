/** OpenTelemetry traces. Without an endpoint, services open no tracing, and the libraries are not loaded. */

import type { Logger } from './logger.ts';
import type { Closable, Use } from './service.ts';

/** Values must not contain ids of people, message content or secrets. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

export type SpanKind = 'server' | 'producer' | 'consumer' | 'internal';

export interface TraceSpan {
  readonly traceId: string;
  /** A W3C `traceparent` with the "sampled" flag, which continues the trace in another process. */
  readonly traceparent: string;
  set(attributes: SpanAttributes): void;
  rename(name: string): void;
  /** Ends the span. Further calls have no effect. @param error its class is recorded, but not its message */
  end(error?: unknown): void;
}

export interface SpanStart {
  readonly name: string;
  readonly kind: SpanKind;
  readonly attributes?: SpanAttributes;
}

export interface Tracing extends Closable {
  /** Whether to record a new trace. */
  sample(): boolean;
  /** Starts the first span of a trace in this deployment. @param traceparent of the caller, or with a new trace id */
  start(span: SpanStart, traceparent?: string): TraceSpan;
  /** Starts a span below the span in the header of a record; null if its trace is not recorded. */
  resume(span: SpanStart, traceparent: Buffer | string | undefined): TraceSpan | null;
  /** Returns the newest open span of a trace in this process. */
  find(traceId: string): TraceSpan | null;
}

export interface TracingOptions {
  readonly service: string;
  readonly config: {
    readonly OTEL_EXPORTER_OTLP_ENDPOINT?: string | undefined;
    readonly OTEL_TRACES_SAMPLER_ARG: number;
  };
  readonly logger: Pick<Logger, 'warn'>;
}

/** Opens the export of traces, or returns null without an endpoint. Open it first, so that it is closed last. */
export async function openTracing(use: Use, { service, config, logger }: TracingOptions): Promise<Tracing | null> {
  const endpoint = config.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (endpoint === undefined) return null;
  const { openOtlpTracing } = await import('./otlp-tracing.ts');
  return use('tracing', () => openOtlpTracing({ service, endpoint, ratio: config.OTEL_TRACES_SAMPLER_ARG, logger }));
}
