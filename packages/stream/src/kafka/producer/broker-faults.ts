import { protocolErrorsCodesById } from '../broker-client.ts';

/** Records were not acknowledged, but may be stored. The caller sends them again. */
export class ProduceFault extends Error {
  override readonly name = 'ProduceFault';
  /** The broker's error name, or `DELIVERY_TIMEOUT`, `CLOSED`, `UNKNOWN_TOPIC` or `UNKNOWN_OFFSET`. */
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** First offset of a stored batch, and the broker's time for it (null on a topic with producer times). */
export interface BatchBase {
  readonly offset: number;
  readonly loggedAtMs: number | null;
}

/**
 * The outcome of a produce request for a batch: acknowledged, or a copy of a stored batch (`base` if the broker returns
 * it); to be resent with the same bytes (`ambiguous` if it may be stored); or not stored, because of its size, its
 * sequence number, or permanently.
 */
export type Verdict =
  | { kind: 'stored'; base: BatchBase | null }
  | { kind: 'retry'; ambiguous: boolean; code: string }
  | { kind: 'tooLarge' | 'identity' | 'refused'; code: string };

const NO_ERROR = 0;
/** MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE: checked before the append. */
const TOO_LARGE = new Set([10, 18]);
/**
 * OUT_OF_ORDER_SEQUENCE_NUMBER, DUPLICATE_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, INVALID_PRODUCER_ID_MAPPING,
 * UNKNOWN_PRODUCER_ID, PRODUCER_FENCED: checked before the append. DUPLICATE_SEQUENCE_NUMBER proves nothing about the
 * batch: a broker that recognises a batch responds without an error.
 */
const IDENTITY = new Set([45, 46, 47, 49, 59, 90]);
/**
 * Final, and checked before the append: INVALID_TOPIC, INVALID_REQUIRED_ACKS, TOPIC_ and CLUSTER_AUTHORIZATION_FAILED,
 * INVALID_TIMESTAMP, UNSUPPORTED_VERSION, INVALID_REQUEST, UNSUPPORTED_FOR_MESSAGE_FORMAT, POLICY_VIOLATION,
 * UNSUPPORTED_COMPRESSION_TYPE, INVALID_RECORD.
 */
const REFUSED = new Set([17, 21, 29, 31, 32, 35, 42, 43, 44, 76, 87]);

/**
 * Classifies a partition's error code in a produce response. Only the codes above prove that nothing was appended: a
 * leader may return any other code after it appended the batch and waited for its replicas (`DelayedProduce`).
 * @param base from the response; negative numbers mean unknown
 */
export function toVerdict(code: number, base: { offset: number; loggedAtMs: number } | null = null): Verdict {
  if (code === NO_ERROR) {
    const loggedAtMs = base === null || base.loggedAtMs < 0 ? null : base.loggedAtMs;
    return { kind: 'stored', base: base === null || base.offset < 0 ? null : { offset: base.offset, loggedAtMs } };
  }
  const name = protocolErrorsCodesById[code] ?? `ERROR_${code}`;
  if (TOO_LARGE.has(code)) return { kind: 'tooLarge', code: name };
  if (IDENTITY.has(code)) return { kind: 'identity', code: name };
  if (REFUSED.has(code)) return { kind: 'refused', code: name };
  // Retried until the delivery timeout, because an unknown code may be temporary.
  return { kind: 'retry', ambiguous: true, code: name };
}
