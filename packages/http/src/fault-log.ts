import type { Logger } from '@playline/runtime';
import type { Exchange } from './exchange.ts';

/** Logs a request that failed, for operators. */
export type LogFault = (exchange: Pick<Exchange, 'traceId'>, error: unknown) => void;

export interface FaultLogParts {
  logger: Pick<Logger, 'error'>;
  /** Calls `run` once, after one interval. */
  afterInterval?: (run: () => void) => void;
}

/** Often enough to follow an outage, seldom enough to read: six lines a minute for each kind of fault. */
const INTERVAL_MS = 10_000;
/** There are few kinds. If there seem to be more, their texts contain ids, and the rest shares one kind. */
const KINDS_MAX = 50;
const OTHERS = 'others';
/** Enough of the text to tell kinds apart, however long it is. */
const KIND_CHARACTERS_MAX = 200;

/** Faults of one kind since the last line about it. */
interface Untold {
  count: number;
  traceId: string;
  message: string;
}

/**
 * Creates the log of failed requests. While a broker is away, every request fails in the same way. The first fault of a
 * kind is logged at once with its stack. Further ones become one line with their number for each interval, until an
 * interval passes without any.
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

/** The inner cause: the public part tells an operator nothing new. */
function causeOf(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? error.cause : error;
}

/** Faults whose texts differ in numbers only, such as bytes, ports or times, are of one kind. */
function kindOf(cause: unknown): string {
  const name = cause instanceof Error ? cause.name : typeof cause;
  return `${name} ${messageOf(cause)}`.slice(0, KIND_CHARACTERS_MAX).replace(/\d+/g, '#');
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
