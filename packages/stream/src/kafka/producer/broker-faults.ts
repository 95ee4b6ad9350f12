import { protocolErrorsCodesById } from '../broker-client.ts';

/** Why records were not acknowledged. They may be in the log all the same; the caller has to send them again. */
export class ProduceFault extends Error {
  override readonly name = 'ProduceFault';
  /** The broker's name of the error, or `DELIVERY_TIMEOUT`, `CLOSED`, `UNKNOWN_TOPIC` or `UNKNOWN_PLACE`. */
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** First offset of a stored batch, and its time in the log; null on a topic with the producer's times. */
export interface BatchBase {
  readonly offset: number;
  readonly loggedAtMs: number | null;
}

/**
 * The outcome of a produce request for one batch.
 * - stored: acknowledged, or recognised as a copy of a stored batch; `base` is the place of its first record, if the
 * broker says it
 * - again: not now; the same bytes are sent again. `ambiguous` unless no byte was sent: the batch may be stored
 * nevertheless
 * - tooLarge: refused because of its size; this request stored nothing
 * - identity: the broker does not accept this producer's sequence number; this request stored nothing
 * - refused: refused for good; this request stored nothing
 */
export type Verdict =
  | { kind: 'stored'; base: BatchBase | null }
  | { kind: 'again'; ambiguous: boolean; code: string }
  | { kind: 'tooLarge' | 'identity' | 'refused'; code: string };

const NO_ERROR = 0;
/** MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE: checked before the append. */
const TOO_LARGE = new Set([10, 18]);
/**
 * OUT_OF_ORDER_SEQUENCE_NUMBER, DUPLICATE_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, INVALID_PRODUCER_ID_MAPPING,
 * UNKNOWN_PRODUCER_ID, PRODUCER_FENCED: checked before the append. DUPLICATE_SEQUENCE_NUMBER says that a later number
 * was used, but not by which records. A broker that recognises a batch answers without an error, so this code proves
 * nothing about the batch.
 */
const IDENTITY = new Set([45, 46, 47, 49, 59, 90]);
/**
 * Final for a produce request, and checked before the append: INVALID_TOPIC, INVALID_REQUIRED_ACKS, TOPIC_ and
 * CLUSTER_AUTHORIZATION_FAILED, INVALID_TIMESTAMP, UNSUPPORTED_VERSION, INVALID_REQUEST,
 * UNSUPPORTED_FOR_MESSAGE_FORMAT, POLICY_VIOLATION, UNSUPPORTED_COMPRESSION_TYPE, INVALID_RECORD.
 */
const REFUSED = new Set([17, 21, 29, 31, 32, 35, 42, 43, 44, 76, 87]);

/**
 * Reads a partition's error code of a produce response: Kafka protocol, "Error codes".
 *
 * Only the codes above prove that the request appended nothing. Any other may come from a leader that appended the
 * batch and then waited for its replicas: NOT_LEADER_OR_FOLLOWER when it is replaced meanwhile,
 * UNKNOWN_TOPIC_OR_PARTITION when the partition moves away, KAFKA_STORAGE_ERROR when its disk fails (`DelayedProduce`,
 * `Partition.checkEnoughReplicasReachOffset`), and of course REQUEST_TIMED_OUT and NOT_ENOUGH_REPLICAS_AFTER_APPEND.
 * NOT_ENOUGH_REPLICAS is sent before the append today, but relying on that could lose a record to save an epoch.
 * @param base from the response; negative numbers mean unknown
 */
export function toVerdict(code: number, base: { offset: number; loggedAtMs: number } | null = null): Verdict {
  if (code === NO_ERROR) return { kind: 'stored', base: base === null || base.offset < 0 ? null : toBase(base) };
  const name = protocolErrorsCodesById[code] ?? `ERROR_${code}`;
  if (TOO_LARGE.has(code)) return { kind: 'tooLarge', code: name };
  if (IDENTITY.has(code)) return { kind: 'identity', code: name };
  if (REFUSED.has(code)) return { kind: 'refused', code: name };
  // Any other code is retried until the delivery time-out: an unknown code may be temporary.
  return { kind: 'again', ambiguous: true, code: name };
}

function toBase({ offset, loggedAtMs }: { offset: number; loggedAtMs: number }): BatchBase {
  return { offset, loggedAtMs: loggedAtMs < 0 ? null : loggedAtMs };
}
