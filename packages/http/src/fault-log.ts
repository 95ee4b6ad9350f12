import type { Logger } from '@playline/runtime';
import type { Exchange } from './exchange.ts';

/** Tells operators of a request that failed. */
export type LogFault = (exchange: Pick<Exchange, 'traceId'>, error: unknown) => void;

export interface FaultLogParts {
  logger: Pick<Logger, 'error'>;
  /** Calls `run` once, after one interval. */
  afterInterval?: (run: () => void) => void;
}

/** Often enough to follow an outage, and seldom enough to read: six lines a minute and kind. */
const INTERVAL_MS = 10_000;
/** Kinds are few; what makes more of them has an id in its words, and shares one kind. */
const KINDS_MAX = 50;
const OTHERS = 'others';
/** Words enough to tell kinds apart, however long a fault talks. */
const KIND_CHARACTERS_MAX = 200;

/** What happened of one kind since it was last told. */
interface Untold {
  count: number;
  traceId: string;
  message: string;
}

/**
 * Builds the log of failed requests. Away brokers fail every request alike: the first fault of a kind is told at once,
 * with its stack; those after it as one line an interval with their number, until an interval passes without one.
 */
export function createFaultLog({ logger, afterInterval = afterTen }: FaultLogParts): LogFault {
  const kinds = new Map<string, Untold>();
  const tell = (kind: string) => {
    const { count, traceId, message } = kinds.get(kind) as Untold;
    if (count === 0) return void kinds.delete(kind);
    logger.error({ traceId, failures: count, latest: message }, 'more requests failed');
    kinds.set(kind, { count: 0, traceId, message });
    afterInterval(() => tell(kind));
  };
  return ({ traceId }, error) => {
    const cause = causeOf(error);
    const kind = kindOf(cause);
    const name = kinds.has(kind) || kinds.size < KINDS_MAX ? kind : OTHERS;
    const untold = kinds.get(name);
    const message = messageOf(cause);
    if (untold !== undefined) return void kinds.set(name, { count: untold.count + 1, traceId, message });
    kinds.set(name, { count: 0, traceId, message });
    afterInterval(() => tell(name));
    logger.error({ traceId, error: cause }, 'request failed');
  };
}

function afterTen(run: () => void): void {
  setTimeout(run, INTERVAL_MS).unref();
}

/** What really happened; the public half says nothing that an operator does not know. */
function causeOf(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? error.cause : error;
}

/** Faults that differ in numbers alone, such as bytes, ports and times, are of one kind. */
function kindOf(cause: unknown): string {
  const name = cause instanceof Error ? cause.name : typeof cause;
  return `${name} ${messageOf(cause)}`.slice(0, KIND_CHARACTERS_MAX).replace(/\d+/g, '#');
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
