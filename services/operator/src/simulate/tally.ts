/** Counters of a run's traffic; the ledger has the single messages. */
export interface Tally {
  batches: number;
  /** Elements of batches, without copies of resent ones. */
  messages: number;
  bytes: number;
  accepted: number;
  rejected: number;
  rejectedByCode: Map<string, number>;
  resentBatches: number;
  lostAnswers: number;
  retries: Map<string, number>;
  unknownBatches: number;
  probes: number;
  readonly latency: Latency;
}

export function createTally(): Tally {
  return {
    batches: 0,
    messages: 0,
    bytes: 0,
    accepted: 0,
    rejected: 0,
    rejectedByCode: new Map(),
    resentBatches: 0,
    lostAnswers: 0,
    retries: new Map(),
    unknownBatches: 0,
    probes: 0,
    latency: createLatency(),
  };
}

export function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

/** Times from request to acknowledgement, in constant memory. */
export interface Latency {
  add(ms: number): void;
  /** Upper bound of the bucket of this quantile; 0 without times. */
  quantileMs(share: number): number;
}

/** Each bucket is 2^(1/8) times the one before: a quantile is off by at most 9 %; 200 of them reach nine hours. */
const BUCKETS = 200;
const BUCKETS_PER_DOUBLING = 8;

export function createLatency(): Latency {
  const buckets = new Uint32Array(BUCKETS);
  let total = 0;
  return {
    add: (ms) => {
      const bucket = Math.ceil(Math.log2(Math.max(1, ms)) * BUCKETS_PER_DOUBLING);
      buckets[Math.min(BUCKETS - 1, bucket)]!++;
      total++;
    },
    quantileMs: (share) => {
      let seen = 0;
      for (let bucket = 0; bucket < BUCKETS; bucket++) {
        seen += buckets[bucket]!;
        if (total > 0 && seen >= share * total) return 2 ** (bucket / BUCKETS_PER_DOUBLING);
      }
      return 0;
    },
  };
}

/** To one decimal place. */
export const round = (value: number): number => Math.round(value * 10) / 10;
