import { randomFillSync } from 'node:crypto';

/** The place of a request in a trace. */
export interface Trace {
  /** 32 lower-case hex characters: `trace_id` of the envelope and header `x-trace-id`. */
  readonly traceId: string;
  /** W3C `traceparent` of version 00, 55 characters, to pass on: the caller's if it was valid, else a new one. */
  readonly traceparent: string;
}

const HEX = '[0-9a-f]';
/** Version, trace id, parent id and flags. ff and zero ids are invalid (W3C Trace Context 2, "traceparent header"). */
const TRACEPARENT = new RegExp(`^(?!ff)(${HEX}{2})-(?!0{32})(${HEX}{32})-(?!0{16})(${HEX}{16})-(${HEX}{2})$`);
/** Length of version 00. Later versions may add more after a hyphen. */
const TRACEPARENT_LENGTH = 55;
/** The one flag whose meaning every version keeps. */
const SAMPLED = 1;

/** Random bytes for a trace id and a parent id. */
const BYTES_PER_TRACE = 24;
/**
 * One call to the system's random source serves this many requests: a call for each would cost more than the rest of
 * this file.
 */
const TRACES_PER_FILL = 256;
const pool = Buffer.allocUnsafe(BYTES_PER_TRACE * TRACES_PER_FILL);
let next = pool.length;

/** Reads the trace of a request from its `traceparent` header, or makes one when it is absent or not valid. */
export function traceOf(traceparent: string | undefined): Trace {
  const given = traceparent === undefined ? null : readTraceparent(traceparent);
  if (given !== null) return given;
  if (next === pool.length) {
    randomFillSync(pool);
    next = 0;
  }
  const at = next;
  next += BYTES_PER_TRACE;
  const traceId = pool.toString('hex', at, at + 16);
  return { traceId, traceparent: `00-${traceId}-${pool.toString('hex', at + 16, at + BYTES_PER_TRACE)}-01` };
}

/**
 * Null when it is not valid. Of a later version the first 55 characters are read. What is passed on is always version
 * 00, with no flag but "sampled": W3C Trace Context demands that, and a caller must not decide how many bytes are added
 * to every record of a batch.
 */
function readTraceparent(text: string): Trace | null {
  const isLonger = text.length > TRACEPARENT_LENGTH;
  if (isLonger && text[TRACEPARENT_LENGTH] !== '-') return null;
  // A copy: a slice would keep the whole header in memory while the request waits for the brokers.
  const head = isLonger ? Buffer.from(text.slice(0, TRACEPARENT_LENGTH), 'latin1').toString('latin1') : text;
  const match = TRACEPARENT.exec(head);
  if (match === null) return null;
  const [, version, traceId = '', parentId, flags = ''] = match;
  if (version === '00') return isLonger ? null : { traceId, traceparent: text };
  const isSampled = (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED;
  return { traceId, traceparent: `00-${traceId}-${parentId}-${isSampled ? '01' : '00'}` };
}
