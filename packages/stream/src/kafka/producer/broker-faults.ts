import { protocolErrorsCodesById } from '../broker-client.ts';

/** The records were not acknowledged but may be stored. The caller must resend them. */
export class ProduceFault extends Error {
  override readonly name = 'ProduceFault';
  /** The broker's error name, or `DELIVERY_TIMEOUT`, `CLOSED`, `UNKNOWN_TOPIC` or `UNKNOWN_OFFSET`. */
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** The first offset of a stored batch, and the broker's timestamp; null for a topic with producer timestamps. */
export interface BatchBase {
  readonly offset: number;
  readonly loggedAtMs: number | null;
}

/**
 * The outcome of a produce request for a batch. `stored` also means that the batch is a duplicate of a stored batch;
 * `base` is null if the broker does not return it. `retry` means that the same bytes must be resent, and `ambiguous`
 * that they may be stored. With any other outcome the batch is not stored.
 */
export type Verdict =
  | { kind: 'stored'; base: BatchBase | null }
  | { kind: 'retry'; ambiguous: boolean; code: string }
  | { kind: 'tooLarge' | 'identity' | 'refused'; code: string };

const NO_ERROR = 0;
/** MESSAGE_TOO_LARGE and RECORD_LIST_TOO_LARGE. Checked before the append. */
const TOO_LARGE = new Set([10, 18]);
/**
 * OUT_OF_ORDER_SEQUENCE_NUMBER, DUPLICATE_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, INVALID_PRODUCER_ID_MAPPING,
 * UNKNOWN_PRODUCER_ID and PRODUCER_FENCED. Checked before the append. DUPLICATE_SEQUENCE_NUMBER does not mean that the
 * batch is stored, because a broker that recognizes a batch returns no error.
 */
const IDENTITY = new Set([45, 46, 47, 49, 59, 90]);
/**
 * Permanent errors that brokers detect before the append: INVALID_TOPIC, INVALID_REQUIRED_ACKS, TOPIC_ and
 * CLUSTER_AUTHORIZATION_FAILED, INVALID_TIMESTAMP, UNSUPPORTED_VERSION, INVALID_REQUEST,
 * UNSUPPORTED_FOR_MESSAGE_FORMAT, POLICY_VIOLATION, UNSUPPORTED_COMPRESSION_TYPE and INVALID_RECORD.
 */
const REFUSED = new Set([17, 21, 29, 31, 32, 35, 42, 43, 44, 76, 87]);

/**
 * Classifies a partition's error code in a produce response. Only the codes above prove that nothing was appended. A
 * leader may return any other code after it has appended the batch and waited for its replicas (`DelayedProduce`).
 * @param base from the response, where negative numbers mean unknown
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
  // Retried until the delivery timeout, because an unknown error may be temporary.
  return { kind: 'retry', ambiguous: true, code: name };
}
