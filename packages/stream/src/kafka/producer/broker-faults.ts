import { protocolErrorsCodesById } from '@platformatic/kafka';

/** Why records were not acknowledged. They may stand in the log all the same: whoever sent them sends them again. */
export class ProduceFault extends Error {
  override readonly name = 'ProduceFault';
  /** The broker's name of the error, `DELIVERY_TIMEOUT`, `CLOSED`, `UNKNOWN_TOPIC` or `UNKNOWN_PLACE`. */
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** Where a stored batch begins, and the time the log gave it; null where the topic keeps the producer's times. */
export interface BatchBase {
  readonly offset: number;
  readonly loggedAtMs: number | null;
}

/**
 * What an answer to a produce request says about one batch.
 * - stored: acknowledged, or seen before; `base` is the place of its first record where the broker tells it
 * - again: not now; the same bytes go again. `ambiguous` when they may have been stored nevertheless
 * - tooLarge: refused for its size, not stored
 * - identity: the broker does not accept this producer's sequence; not stored by this request
 * - refused: never to be accepted, not stored
 */
export type Verdict =
  | { kind: 'stored'; base: BatchBase | null }
  | { kind: 'tooLarge' }
  | { kind: 'again'; ambiguous: boolean; code: string }
  | { kind: 'identity' | 'refused'; code: string };

const NO_ERROR = 0;
/** An earlier attempt was stored, so long ago that the broker has forgotten where. */
const DUPLICATE_SEQUENCE_NUMBER = 46;
const TOO_LARGE = new Set([10, 18]);
/** OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, INVALID_PRODUCER_ID_MAPPING, UNKNOWN_PRODUCER_ID, PRODUCER_FENCED */
const IDENTITY = new Set([45, 47, 49, 59, 90]);
/**
 * Final for a produce request: INVALID_TOPIC, INVALID_REQUIRED_ACKS, TOPIC_ and CLUSTER_AUTHORIZATION_FAILED,
 * INVALID_TIMESTAMP, UNSUPPORTED_VERSION, INVALID_REQUEST, UNSUPPORTED_FOR_MESSAGE_FORMAT, POLICY_VIOLATION,
 * UNSUPPORTED_COMPRESSION_TYPE, INVALID_RECORD.
 */
const REFUSED = new Set([17, 21, 29, 31, 32, 35, 42, 43, 44, 76, 87]);
/** The leader appended the batch but not enough replicas confirmed it in time, or nobody knows. */
const AMBIGUOUS = new Set([-1, 7, 13, 20]);

/**
 * Reads a partition's error code of a produce response: Kafka protocol, "Error codes".
 * @param base as the response has it: numbers below zero say nothing
 */
export function toVerdict(code: number, base: { offset: number; loggedAtMs: number } | null = null): Verdict {
  if (code === NO_ERROR) return { kind: 'stored', base: base === null || base.offset < 0 ? null : toBase(base) };
  if (code === DUPLICATE_SEQUENCE_NUMBER) return { kind: 'stored', base: null };
  if (TOO_LARGE.has(code)) return { kind: 'tooLarge' };
  const name = protocolErrorsCodesById[code] ?? `ERROR_${code}`;
  if (IDENTITY.has(code)) return { kind: 'identity', code: name };
  if (REFUSED.has(code)) return { kind: 'refused', code: name };
  // Anything else is tried again until the delivery time-out: an unknown code must not lose what may pass.
  return { kind: 'again', ambiguous: AMBIGUOUS.has(code), code: name };
}

function toBase({ offset, loggedAtMs }: { offset: number; loggedAtMs: number }): BatchBase {
  return { offset, loggedAtMs: loggedAtMs < 0 ? null : loggedAtMs };
}
