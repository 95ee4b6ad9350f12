import { PublicError } from '@playline/errors';
import { waitAtMost } from '@playline/stores';

export const MINUTE_MS = 60_000;
/** Retention: the last hour and the hour before, which is more than any query needs. */
export const MINUTES_KEPT = 120;
/** Includes the current minute. */
export const HOUR_MINUTES = 60;
export const HOUR_MS: number = HOUR_MINUTES * MINUTE_MS;
/** Includes the current hour. */
export const DAY_HOURS = 24;

/** A request that was refused even though its key is valid. */
export interface Refusal {
  readonly at: number;
  /** Error code in the response, such as TOO_MANY_REQUESTS_ERROR. Contains no client input. */
  readonly reason: string;
  readonly traceId: string;
}

export interface KeyCounts {
  readonly keyId: string;
  /** Number of requests, including refused requests. */
  readonly uses: number;
  readonly refusals: number;
  /** Number of messages, including rejected messages. */
  readonly messages: number;
  readonly lastUsedAt: number;
  readonly lastRefusal: Refusal | null;
}

export interface EnvironmentCounts {
  readonly environmentId: string;
  readonly accepted: number;
  readonly rejected: number;
}

/** One process's counts for one minute. */
export interface UsageCounts {
  /** Start of the minute, in epoch milliseconds. */
  readonly minuteAt: number;
  readonly keys: readonly KeyCounts[];
  readonly environments: readonly EnvironmentCounts[];
}

/** A key's usage, up to ten seconds old. */
export interface KeyUse {
  /** Epoch milliseconds; null if no use is recorded. */
  readonly lastUsedAt: number | null;
  /** Number of requests, including refused requests. */
  readonly usesOfHour: number;
  readonly refusalsOfHour: number;
  /** Number of messages, including rejected messages. */
  readonly messagesOfHour: number;
  /** Counted in whole hours: the last 24, including the current hour. */
  readonly messagesOfDay: number;
  readonly lastRefusal: Refusal | null;
}

const NONE_OF_HOUR = { usesOfHour: 0, refusalsOfHour: 0, messagesOfHour: 0, messagesOfDay: 0 } as const;
export const NO_USE: KeyUse = { lastUsedAt: null, ...NONE_OF_HOUR, lastRefusal: null };

export interface EnvironmentMinute {
  /** Start of the minute, in epoch milliseconds. */
  readonly minuteAt: number;
  readonly accepted: number;
  readonly rejected: number;
}

/** Sums over all processes, for display only. */
export interface KeyUsage {
  /** @throws if the store fails; some counts may have been added */
  add(counts: UsageCounts): Promise<void>;
  /** Returns an entry for every key. @throws if the store does not respond */
  readKeys(keyIds: readonly string[]): Promise<ReadonlyMap<string, KeyUse>>;
  /** Returns the last minutes including the current minute, oldest first. @throws if the store does not respond */
  readEnvironments(
    environmentIds: readonly string[],
    minutes: number,
  ): Promise<ReadonlyMap<string, readonly EnvironmentMinute[]>>;
}

/** Start times of the hours of `messagesOfDay`, oldest first. */
export const hoursUpTo = (instantMs: number): number[] => {
  const last = Math.floor(instantMs / HOUR_MS) * HOUR_MS;
  return Array.from({ length: DAY_HOURS }, (_, index) => last - (DAY_HOURS - 1 - index) * HOUR_MS);
};

export const minuteOf = (instantMs: number): number => Math.floor(instantMs / MINUTE_MS) * MINUTE_MS;

/** Returns the start times of the last minutes up to an instant, oldest first. */
export function minutesUpTo(instantMs: number, minutes: number): number[] {
  const last = minuteOf(instantMs);
  return Array.from({ length: minutes }, (_, index) => last - (minutes - 1 - index) * MINUTE_MS);
}

/** Returns accepted messages per second and the fraction of rejected messages, excluding the current minute. */
export function toEnvironmentRate(minutes: readonly EnvironmentMinute[]) {
  const whole = minutes.slice(0, -1);
  const accepted = whole.reduce((sum, minute) => sum + minute.accepted, 0);
  const rejected = whole.reduce((sum, minute) => sum + minute.rejected, 0);
  return {
    perSecond: whole.length === 0 ? 0 : accepted / ((whole.length * MINUTE_MS) / 1000),
    rejectedShare: accepted + rejected === 0 ? 0 : rejected / (accepted + rejected),
  };
}

/** A key whose usage is counted. Invalid keys have no owner and are not counted. */
export interface CountedKey {
  readonly keyId: string;
  /** Null for keys that do not belong to an environment. */
  readonly environmentId: string | null;
}

/** In-memory counts. Counting costs one map lookup per request. */
export interface UsageCounter {
  used(key: CountedKey, accepted: number, rejected: number): void;
  /** Counts a refused request. @param refusal.rejected number of messages in the request, if they were parsed */
  refused(
    key: CountedKey,
    refusal: { readonly reason: string; readonly traceId: string; readonly rejected?: number },
  ): void;
  /** Returns and resets the counts. `lost`: number of requests not counted, because the limit of keys was reached. */
  take(): UsageCounts & { readonly lost: number };
}

/** Limits memory usage; each key takes about 200 bytes. */
const KEYS_MAX = 10_000;

interface Entry extends CountedKey {
  uses: number;
  refusals: number;
  accepted: number;
  rejected: number;
  lastUsedAt: number;
  lastRefusal: Refusal | null;
}

export function createUsageCounter(options: { keysMax?: number; wallClockMs?: () => number } = {}): UsageCounter {
  const { keysMax = KEYS_MAX, wallClockMs = Date.now } = options;
  let entries = new Map<string, Entry>();
  let lost = 0;
  let sinceAt = wallClockMs();

  const add = ({ keyId, environmentId }: CountedKey): Entry | null => {
    if (entries.size >= keysMax) {
      lost++;
      return null;
    }
    const counts = { uses: 0, refusals: 0, accepted: 0, rejected: 0 };
    const entry: Entry = { keyId, environmentId, ...counts, lastUsedAt: 0, lastRefusal: null };
    entries.set(keyId, entry);
    return entry;
  };
  return {
    used(key, accepted, rejected) {
      const entry = entries.get(key.keyId) ?? add(key);
      if (entry === null) return;
      entry.uses++;
      entry.accepted += accepted;
      entry.rejected += rejected;
      entry.lastUsedAt = wallClockMs();
    },
    refused(key, { reason, traceId, rejected = 0 }) {
      const entry = entries.get(key.keyId) ?? add(key);
      if (entry === null) return;
      entry.uses++;
      entry.refusals++;
      entry.rejected += rejected;
      entry.lastUsedAt = wallClockMs();
      entry.lastRefusal = { at: entry.lastUsedAt, reason, traceId };
    },
    take() {
      const counted = [...entries.values()];
      const takenAt = wallClockMs();
      // Use the minute in the middle of the interval, because timers fire early or late.
      const counts = { minuteAt: minuteOf((sinceAt + takenAt) / 2), keys: counted.map(toKeyCounts), lost };
      entries = new Map();
      [lost, sinceAt] = [0, takenAt];
      return { ...counts, environments: toEnvironments(counted) };
    },
  };
}

const toKeyCounts = ({ keyId, uses, refusals, accepted, rejected, lastUsedAt, lastRefusal }: Entry): KeyCounts => {
  return { keyId, uses, refusals, messages: accepted + rejected, lastUsedAt, lastRefusal };
};

/** Sums the counts of each environment's keys. */
function toEnvironments(entries: readonly Entry[]): EnvironmentCounts[] {
  const sums = new Map<string, { accepted: number; rejected: number }>();
  for (const { environmentId, accepted, rejected } of entries) {
    if (environmentId === null || accepted + rejected === 0) continue;
    const sum = sums.get(environmentId) ?? { accepted: 0, rejected: 0 };
    sums.set(environmentId, { accepted: sum.accepted + accepted, rejected: sum.rejected + rejected });
  }
  return [...sums].map(([environmentId, sum]) => ({ environmentId, ...sum }));
}

/** Counts a request that ended in an error. */
export function countFault(
  usage: Pick<UsageCounter, 'used' | 'refused'>,
  key: CountedKey,
  { fault, traceId }: { readonly fault: unknown; readonly traceId: string },
): void {
  const reason = fault instanceof PublicError ? fault.code : 'INTERNAL_SERVER_ERROR';
  // A 404 is a normal response: the resource does not exist.
  if (reason === 'RESOURCE_NOT_FOUND') usage.used(key, 0, 0);
  else usage.refused(key, { reason, traceId });
}

export interface UsageFlushOptions {
  readonly counter: Pick<UsageCounter, 'take'>;
  readonly usage: Pick<KeyUsage, 'add'>;
  /** Called with the number of requests that could not be counted, and the reason. */
  readonly onLost?: (requests: number, fault: unknown) => void;
  /** Must divide a minute evenly. */
  readonly intervalMs?: number;
  readonly wallClockMs?: () => number;
}

/** Writing a thousand keys costs Redis a few milliseconds. */
const INTERVAL_MS = 10_000;
/** Maximum time that shutdown waits for the last write. */
const CLOSE_MAX_MS = 1_000;

/** Writes counts at regular intervals and on close. Does not retry, because counts could be added twice. */
export function openUsageFlush(options: UsageFlushOptions): { close(): Promise<void> } {
  const { counter, usage, onLost, intervalMs = INTERVAL_MS, wallClockMs = Date.now } = options;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  let isClosed = false;

  const flush = async () => {
    const { lost, ...counts } = counter.take();
    if (lost > 0) onLost?.(lost, new Error('more keys are in use than can be counted'));
    if (counts.keys.length === 0) return;
    try {
      await usage.add(counts);
    } catch (fault) {
      onLost?.(
        counts.keys.reduce((sum, { uses }) => sum + uses, 0),
        fault,
      );
    }
  };
  const schedule = () => {
    if (isClosed) return;
    timer = setTimeout(
      () => {
        running = flush().finally(schedule);
      },
      intervalMs - (wallClockMs() % intervalMs),
    );
    timer.unref();
  };
  schedule();
  return {
    close: async () => {
      isClosed = true;
      clearTimeout(timer);
      await waitAtMost(CLOSE_MAX_MS, running.then(flush), () => {}).catch(() => {});
    },
  };
}

export interface UsageCountParts {
  readonly store: Pick<KeyUsage, 'add'> & { close(): Promise<void> };
  /** Called with the number of requests that could not be counted. */
  readonly onLost: (requests: number) => void;
  readonly logger: { warn(context: object, message: string): void };
}

const WARN_INTERVAL_MS = 60_000;

/** Counts usage in memory and writes the counts to the store. Requests never wait for the store. */
export function openUsageCount(parts: UsageCountParts): { readonly counter: UsageCounter; close(): Promise<void> } {
  const { store, onLost, logger } = parts;
  let warnedAt = Number.NEGATIVE_INFINITY;
  const counter = createUsageCounter();
  const flush = openUsageFlush({
    counter,
    usage: store,
    onLost: (requests, error) => {
      onLost(requests);
      if (performance.now() - warnedAt < WARN_INTERVAL_MS) return;
      warnedAt = performance.now();
      logger.warn({ error }, 'failed to record key usage');
    },
  });
  return {
    counter,
    close: async () => {
      await flush.close();
      await store.close();
    },
  };
}
