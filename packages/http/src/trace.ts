import { randomFillSync } from 'node:crypto';

/** Where a request stands in a trace. */
export interface Trace {
  /** 32 lower-case hex characters: `trace_id` of the envelope and header `x-trace-id`. */
  readonly traceId: string;
  /** W3C `traceparent` of version 00, 55 characters, to hand on: the caller's when it was valid, else one made here. */
  readonly traceparent: string;
}

const HEX = '[0-9a-f]';
/** Version, trace id, parent id and flags. ff and zero ids are invalid (W3C Trace Context 2, "traceparent header"). */
const TRACEPARENT = new RegExp(`^(?!ff)(${HEX}{2})-(?!0{32})(${HEX}{32})-(?!0{16})(${HEX}{16})-(${HEX}{2})$`);
/** Characters of version 00: all it has. Later versions may append more behind a hyphen. */
const TRACEPARENT_LENGTH = 55;
/** The one flag whose meaning every version keeps. */
const SAMPLED = 1;

/** A trace id and a parent id. */
const BYTES_PER_TRACE = 24;
/** One call to the system's random source serves this many requests: a call each costs more than the rest of this file. */
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
 * Null when it is not valid. Of a later version the first 55 characters are read, and what is handed on is made of them
 * as version 00 says it, with no flag but whether it is sampled: so W3C Trace Context wants it, and a caller must not
 * choose how many bytes stand in every record of a batch.
 */
function readTraceparent(text: string): Trace | null {
  const isLonger = text.length > TRACEPARENT_LENGTH;
  if (isLonger && text[TRACEPARENT_LENGTH] !== '-') return null;
  // A copy: a slice would keep the whole header alive while the brokers are waited for.
  const head = isLonger ? Buffer.from(text.slice(0, TRACEPARENT_LENGTH), 'latin1').toString('latin1') : text;
  const match = TRACEPARENT.exec(head);
  if (match === null) return null;
  const [, version, traceId = '', parentId, flags = ''] = match;
  if (version === '00') return isLonger ? null : { traceId, traceparent: text };
  const isSampled = (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED;
  return { traceId, traceparent: `00-${traceId}-${parentId}-${isSampled ? '01' : '00'}` };
}
