import { randomFillSync } from 'node:crypto';

export interface Trace {
  /** 32 lower-case hex characters: `trace_id` of the envelope, header `x-trace-id`. */
  readonly traceId: string;
  /** W3C `traceparent` of version 00, 55 characters: the caller's, or a new one. */
  readonly traceparent: string;
}

const HEX = '[0-9a-f]';
/** Version, trace id, parent id and flags. ff and zero ids are invalid (W3C Trace Context 2). */
const TRACEPARENT = new RegExp(`^(?!ff)(${HEX}{2})-(?!0{32})(${HEX}{32})-(?!0{16})(${HEX}{16})-(${HEX}{2})$`);
/** Length of version 00; later versions may append more after a hyphen. */
const TRACEPARENT_LENGTH = 55;
/** The flag "sampled", which every version has. */
const SAMPLED = 1;

const BYTES_PER_TRACE = 24;
/** Number of requests per call of the random source. */
const TRACES_PER_FILL = 256;
const pool = Buffer.allocUnsafe(BYTES_PER_TRACE * TRACES_PER_FILL);
let next = pool.length;

/** The trace in a `traceparent` header, or a new trace. */
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
 * Null when invalid. Only version 00 and the flag "sampled" are passed on, so that callers cannot choose the size of
 * every record.
 */
function readTraceparent(text: string): Trace | null {
  const isLonger = text.length > TRACEPARENT_LENGTH;
  if (isLonger && text[TRACEPARENT_LENGTH] !== '-') return null;
  // Copied, because a slice would keep the whole header in memory.
  const head = isLonger ? Buffer.from(text.slice(0, TRACEPARENT_LENGTH), 'latin1').toString('latin1') : text;
  const match = TRACEPARENT.exec(head);
  if (match === null) return null;
  const [, version, traceId = '', parentId, flags = ''] = match;
  if (version === '00') return isLonger ? null : { traceId, traceparent: text };
  const isSampled = (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED;
  return { traceId, traceparent: `00-${traceId}-${parentId}-${isSampled ? '01' : '00'}` };
}
