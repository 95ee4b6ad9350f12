import { randomFillSync } from 'node:crypto';

export interface Trace {
  /** 32 lower-case hexadecimal characters, for `trace_id` in the envelope and the header `x-trace-id`. */
  readonly traceId: string;
  /** A version 00 W3C `traceparent` of 55 characters with the caller's or new ids, and without the "sampled" flag. */
  readonly traceparent: string;
}

const HEX = '[0-9a-f]';
/** Version, trace id, parent id and flags. Version ff and ids of zeros are invalid (W3C Trace Context 2). */
const TRACEPARENT = new RegExp(`^(?!ff)(${HEX}{2})-(?!0{32})(${HEX}{32})-(?!0{16})(${HEX}{16})-${HEX}{2}$`);
/** The length in version 00. Later versions may append more after a hyphen. */
const TRACEPARENT_LENGTH = 55;

const BYTES_PER_TRACE = 24;
/** Requests per call to the random source. */
const TRACES_PER_FILL = 256;
const pool = Buffer.allocUnsafe(BYTES_PER_TRACE * TRACES_PER_FILL);
let next = pool.length;

/** Returns the trace in a `traceparent` header, or a new trace. */
export function traceOf(traceparent: string | undefined): Trace {
  const received = traceparent === undefined ? null : readTraceparent(traceparent);
  if (received !== null) return received;
  if (next === pool.length) {
    randomFillSync(pool);
    next = 0;
  }
  const at = next;
  next += BYTES_PER_TRACE;
  const traceId = pool.toString('hex', at, at + 16);
  return { traceId, traceparent: `00-${traceId}-${pool.toString('hex', at + 16, at + BYTES_PER_TRACE)}-00` };
}

/**
 * Returns null if the header is invalid. Only the ids are passed on, because callers could otherwise choose the size of
 * every record, and which traces are recorded.
 */
function readTraceparent(text: string): Trace | null {
  const isLonger = text.length > TRACEPARENT_LENGTH;
  if (isLonger && text[TRACEPARENT_LENGTH] !== '-') return null;
  // Copied, because a slice would retain the whole header in memory.
  const head = isLonger ? Buffer.from(text.slice(0, TRACEPARENT_LENGTH), 'latin1').toString('latin1') : text;
  const match = TRACEPARENT.exec(head);
  if (match === null) return null;
  const [, version, traceId = '', parentId] = match;
  return version === '00' && isLonger ? null : { traceId, traceparent: `00-${traceId}-${parentId}-00` };
}
