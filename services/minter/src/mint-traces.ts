import type { MintRequestRecord } from '@playline/contracts';
import type { TraceSpan, Tracing } from '@playline/runtime';
import type { StreamRecord } from '@playline/stream';
import type { LaneWriter, MintLog } from './ports.ts';

export type MintTraces = ReturnType<typeof createMintTraces>;

/**
 * Creates a span per recorded trace, from its first request until its last asset is settled. A process that takes over
 * the signer does not continue the span.
 */
export function createMintTraces(tracing: Pick<Tracing, 'resume'> | null) {
  const pending = new Map<string, { readonly span: TraceSpan; assets: number }>();
  const settle = (traceId: string) => {
    const trace = pending.get(traceId);
    if (trace === undefined || --trace.assets > 0) return;
    pending.delete(traceId);
    trace.span.end();
  };
  return {
    /** Call before the request's first state is published, so that the state continues the trace. */
    follow(
      { chain, traceId }: Pick<MintRequestRecord, 'chain' | 'traceId'>,
      { headers }: Pick<StreamRecord, 'headers'>,
    ) {
      const known = pending.get(traceId);
      if (known !== undefined) known.assets++;
      const start = { name: 'mint', kind: 'consumer', attributes: { 'playline.chain': chain } } as const;
      const span = known === undefined ? (tracing?.resume(start, headers.traceparent) ?? null) : null;
      if (span !== null) pending.set(traceId, { span, assets: 1 });
    },
    watchLog: (log: MintLog): MintLog =>
      tracing === null
        ? log
        : {
            ...log,
            openWriter: async (lane) => {
              const writer = await log.openWriter(lane);
              const append: LaneWriter['append'] = async (change) => {
                await writer.append(change);
                for (const { status, traceId } of change.states) if (status !== 'pending') settle(traceId);
              };
              return { ...writer, append };
            },
          },
  };
}
