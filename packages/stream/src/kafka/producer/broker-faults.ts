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
 * - stored: acknowledged, or recognised as the repetition of one that is; `base` is the place of its first record where
 *   the broker tells it
 * - again: not now; the same bytes go again. `ambiguous` unless no byte has left: they may have been stored nevertheless
 * - tooLarge: refused for its size, not stored by this request
 * - identity: the broker does not accept this producer's sequence; not stored by this request
 * - refused: never to be accepted, not stored by this request
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
 * UNKNOWN_PRODUCER_ID, PRODUCER_FENCED: checked before the append. DUPLICATE_SEQUENCE_NUMBER says that a later number was
 * taken, not by which records; brokers that recognise a batch answer without an error, so it proves nothing about this one.
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
 * Only the codes above prove that the request appended nothing. Any other may come from a leader that had appended the
 * batch and was waiting for its replicas: NOT_LEADER_OR_FOLLOWER when it is replaced meanwhile, UNKNOWN_TOPIC_OR_PARTITION
 * when the partition moves away, KAFKA_STORAGE_ERROR when its disk fails (`DelayedProduce`,
 * `Partition.checkEnoughReplicasReachOffset`), and of course REQUEST_TIMED_OUT and NOT_ENOUGH_REPLICAS_AFTER_APPEND.
 * NOT_ENOUGH_REPLICAS comes before the append today; believing that would save an epoch and could cost a record.
 * @param base as the response has it: numbers below zero say nothing
 */
export function toVerdict(code: number, base: { offset: number; loggedAtMs: number } | null = null): Verdict {
  if (code === NO_ERROR) return { kind: 'stored', base: base === null || base.offset < 0 ? null : toBase(base) };
  const name = protocolErrorsCodesById[code] ?? `ERROR_${code}`;
  if (TOO_LARGE.has(code)) return { kind: 'tooLarge', code: name };
  if (IDENTITY.has(code)) return { kind: 'identity', code: name };
  if (REFUSED.has(code)) return { kind: 'refused', code: name };
  // Tried again until the delivery time-out, whatever it is: an unknown code must not fail what may pass.
  return { kind: 'again', ambiguous: true, code: name };
}

function toBase({ offset, loggedAtMs }: { offset: number; loggedAtMs: number }): BatchBase {
  return { offset, loggedAtMs: loggedAtMs < 0 ? null : loggedAtMs };
}
