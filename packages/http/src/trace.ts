import { randomFillSync } from 'node:crypto';

/** Where a request stands in a trace. */
export interface Trace {
  /** 32 lower-case hex characters: `trace_id` of the envelope and header `x-trace-id`. */
  readonly traceId: string;
  /** W3C `traceparent` to hand on: the caller's own when it was valid, else one made here. */
  readonly traceparent: string;
}

const HEX = '[0-9a-f]';
/** Version 00 is exactly four fields; later versions may append more; ff and zero ids are invalid (W3C Trace Context 2). */
const TRACEPARENT = new RegExp(
  `^(?:00-(?!0{32})(${HEX}{32})-(?!0{16})${HEX}{16}-${HEX}{2}|(?!00|ff)${HEX}{2}-(?!0{32})(${HEX}{32})-(?!0{16})${HEX}{16}-${HEX}{2}(?:-.*)?)$`,
);

/** A trace id and a parent id. */
const BYTES_PER_TRACE = 24;
/** One call to the system's random source serves this many requests: a call each costs more than the rest of this file. */
const TRACES_PER_FILL = 256;
const pool = Buffer.allocUnsafe(BYTES_PER_TRACE * TRACES_PER_FILL);
let next = pool.length;

/** Reads the trace of a request from its `traceparent` header, or makes one when it is absent or not valid. */
export function traceOf(traceparent: string | undefined): Trace {
  if (traceparent !== undefined) {
    const match = TRACEPARENT.exec(traceparent);
    const traceId = match?.[1] ?? match?.[2];
    if (traceId !== undefined) return { traceId, traceparent };
  }
  if (next === pool.length) {
    randomFillSync(pool);
    next = 0;
  }
  const at = next;
  next += BYTES_PER_TRACE;
  const traceId = pool.toString('hex', at, at + 16);
  return { traceId, traceparent: `00-${traceId}-${pool.toString('hex', at + 16, at + BYTES_PER_TRACE)}-01` };
}
