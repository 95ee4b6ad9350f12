import { toVerdict, type Verdict } from '../producer/broker-faults.ts';
import type { Cluster, EncodedBatch } from '../producer/sender.ts';

export interface BatchOutcome {
  /** When the leader receives the batch: immediately, never, or after this many further batches. */
  readonly arrives: 'now' | 'never' | number;
  /**
   * What the sender receives: the leader's response, no response, no connection, or this error code. An error code with
   * `arrives: 'now'` means that the leader appended the batch, and that the request failed while waiting for replicas.
   */
  readonly response: 'normal' | 'lost' | 'no connection' | number;
  readonly bytesMax?: number;
}

export const SUCCESS: BatchOutcome = { arrives: 'now', response: 'normal' };

/** A leader's state for one producer id in one partition. */
interface ProducerState {
  readonly epoch: number;
  readonly next: number;
  /** Base offsets of the last batches, by `<first sequence number>-<count>`. */
  readonly recent: ReadonlyMap<string, number>;
}

/** How many batches per producer Kafka remembers to detect duplicates (`ProducerStateEntry`). */
const RECENT_BATCHES = 5;
const SEQUENCE_END = 2 ** 31;
const NODES = 2;
const [MESSAGE_TOO_LARGE, OUT_OF_ORDER, DUPLICATE, INVALID_EPOCH] = [10, 45, 46, 47];
const NO_STATE: ProducerState = { epoch: -1, next: 0, recent: new Map() };

interface LoggedBatch {
  readonly bytes: Buffer;
  readonly count: number;
}

export interface SimulationOptions {
  /** One outcome per sent batch. Later batches succeed. */
  outcomes?: readonly BatchOutcome[];
  /** Whether a partition has a leader, per call. True for later calls. */
  leaders?: readonly boolean[];
  partitions?: number;
  bytesMax?: number;
  firstEpoch?: number;
  /** Rejects an old sequence number with DUPLICATE_SEQUENCE_NUMBER, like brokers before 2.x. */
  isOld?: boolean;
  /** Called after each batch, before the sender receives the result. */
  onBatch?: () => void;
}

/** Leaders that apply Kafka's rules for sequence numbers. The test injects network and replication faults. */
export class SimulatedCluster implements Cluster {
  readonly log = new Map<number, LoggedBatch[]>();
  readonly newProducerIds: bigint[] = [];
  readonly #options: SimulationOptions;
  readonly #outcomes: BatchOutcome[];
  readonly #leaders: boolean[];
  readonly #producers = new Map<string, ProducerState>();
  #delayed: { batch: EncodedBatch; after: number }[] = [];
  #bytesMax: number;

  constructor(options: SimulationOptions = {}) {
    this.#options = options;
    this.#outcomes = [...(options.outcomes ?? [])];
    this.#leaders = [...(options.leaders ?? [])];
    this.#bytesMax = options.bytesMax ?? Number.POSITIVE_INFINITY;
  }

  partitionCount = () => this.#options.partitions ?? 2;
  leaderOf = (_topic: string, partition: number) => (this.#leaders.shift() === false ? -1 : partition % NODES);
  refresh = async () => [];
  newProducerId = async () => {
    const producerId = BigInt(this.newProducerIds.length);
    this.newProducerIds.push(producerId);
    return { producerId, producerEpoch: this.#options.firstEpoch ?? 0 };
  };

  async produce(_node: number, batches: readonly EncodedBatch[]): Promise<Verdict[]> {
    return batches.map((batch) => this.#deliver(batch, this.#outcomes.shift() ?? SUCCESS));
  }

  #deliver(batch: EncodedBatch, outcome: BatchOutcome): Verdict {
    this.#bytesMax = outcome.bytesMax ?? this.#bytesMax;
    const verdict = outcome.arrives === 'now' ? this.#append(batch) : null;
    this.#passTime();
    if (typeof outcome.arrives === 'number')
      this.#delayed.push({ batch: { ...batch, bytes: Buffer.from(batch.bytes) }, after: outcome.arrives });
    this.#options.onBatch?.();
    if (outcome.response === 'normal') return verdict ?? { kind: 'retry', ambiguous: true, code: 'NO_RESPONSE' };
    if (outcome.response === 'lost') return { kind: 'retry', ambiguous: true, code: 'NO_RESPONSE' };
    if (outcome.response === 'no connection') return { kind: 'retry', ambiguous: false, code: 'NO_CONNECTION' };
    return toVerdict(outcome.response, { offset: -1, loggedAtMs: -1 });
  }

  #passTime(): void {
    this.#delayed = this.#delayed.map(({ batch, after }) => ({ batch, after: after - 1 }));
    this.#arrive(this.#delayed.filter(({ after }) => after <= 0));
    this.#delayed = this.#delayed.filter(({ after }) => after > 0);
  }

  #arrive(late: readonly { batch: EncodedBatch }[]): void {
    for (const { batch } of late) this.#append(batch);
  }

  /**
   * Checks sequence numbers like `UnifiedLog.analyzeAndValidateProducerState` and `ProducerAppendInfo.checkSequence`.
   */
  #append({ partition, bytes }: EncodedBatch): Verdict {
    const epoch = bytes.readInt16BE(51);
    const first = bytes.readInt32BE(53);
    const count = bytes.readInt32BE(57);
    if (bytes.length > this.#bytesMax) return toVerdict(MESSAGE_TOO_LARGE);
    const name = `${partition}/${bytes.readBigInt64BE(43)}`;
    const state = this.#producers.get(name) ?? NO_STATE;
    const stored = state.epoch === epoch ? state.recent.get(`${first}-${count}`) : undefined;
    if (stored !== undefined) return toVerdict(0, { offset: stored, loggedAtMs: -1 });
    if (epoch < state.epoch) return toVerdict(INVALID_EPOCH);
    const expected = state.epoch < epoch ? 0 : state.next;
    // A leader accepts any sequence number from an unknown producer.
    if (first !== expected && state !== NO_STATE)
      return toVerdict(this.#options.isOld && epoch === state.epoch && first < expected ? DUPLICATE : OUT_OF_ORDER);
    const base = this.#write(partition, { bytes: Buffer.from(bytes), count });
    const before = state.epoch === epoch ? [...state.recent] : [];
    const recent = new Map([...before, [`${first}-${count}`, base] as const].slice(-RECENT_BATCHES));
    this.#producers.set(name, { epoch, next: (first + count) % SEQUENCE_END, recent });
    return toVerdict(0, { offset: base, loggedAtMs: -1 });
  }

  #write(partition: number, batch: LoggedBatch): number {
    const log = this.log.get(partition) ?? [];
    this.log.set(partition, [...log, batch]);
    return log.reduce((sum, { count }) => sum + count, 0);
  }

  arriveLate(): void {
    this.#arrive(this.#delayed.splice(0));
  }

  /** Makes the leaders lose their producer states, like an unclean election. */
  forgetProducers(): void {
    this.#producers.clear();
  }

  /** Returns the values in a partition in log order. Each record has a value like `#number#`. */
  values(partition: number): string[] {
    return (this.log.get(partition) ?? []).flatMap(({ bytes }) => bytes.toString('latin1').match(/#\d+#/g) ?? []);
  }
}
