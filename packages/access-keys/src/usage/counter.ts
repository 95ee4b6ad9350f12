import { PublicError } from '@playline/errors';
import { type EnvironmentCounts, type KeyCounts, minuteOf, type Refusal, type UsageCounts } from './key-usage.ts';

/** A valid key. Invalid ones have no owner and are not counted. */
export interface CountedKey {
  readonly keyId: string;
  /** Null for a key that belongs to no environment. */
  readonly environmentId: string | null;
}

/** Counts the use of keys in this process. A request costs one look-up in a map, without a call of a store. */
export interface UsageCounter {
  /** Counts a served request and the outcome of its messages. */
  used(key: CountedKey, accepted: number, rejected: number): void;
  /** Counts a refused request. @param refusal.rejected number of its messages, if they were read */
  refused(
    key: CountedKey,
    refusal: { readonly reason: string; readonly traceId: string; readonly rejected?: number },
  ): void;
  /** Counts since the last call. `lost`: requests of keys beyond the limit. */
  take(): UsageCounts & { readonly lost: number };
}

/** Bounds memory (about 200 bytes per key). A process serves far fewer keys in ten seconds. */
const KEYS_MAX = 10_000;

interface Entry {
  readonly keyId: string;
  readonly environmentId: string | null;
  uses: number;
  refusals: number;
  accepted: number;
  rejected: number;
  lastUsedAt: number;
  lastRefusal: Refusal | null;
}

export interface UsageCounterOptions {
  readonly keysMax?: number;
  readonly wallClockMs?: () => number;
}

export function createUsageCounter({
  keysMax = KEYS_MAX,
  wallClockMs = Date.now,
}: UsageCounterOptions = {}): UsageCounter {
  let entries = new Map<string, Entry>();
  let lost = 0;
  let sinceAt = wallClockMs();

  const add = ({ keyId, environmentId }: CountedKey): Entry | null => {
    if (entries.size >= keysMax) {
      lost++;
      return null;
    }
    const entry: Entry = {
      keyId,
      environmentId,
      uses: 0,
      refusals: 0,
      accepted: 0,
      rejected: 0,
      lastUsedAt: 0,
      lastRefusal: null,
    };
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
      const taken = [...entries.values()];
      const takenAt = wallClockMs();
      // The minute of the middle, so that a timer that fires early or late does not move counts into another minute.
      const counts = { minuteAt: minuteOf((sinceAt + takenAt) / 2), keys: taken.map(toKeyCounts), lost };
      entries = new Map();
      [lost, sinceAt] = [0, takenAt];
      return { ...counts, environments: toEnvironments(taken) };
    },
  };
}

function toKeyCounts({ keyId, uses, refusals, lastUsedAt, lastRefusal }: Entry): KeyCounts {
  return { keyId, uses, refusals, lastUsedAt, lastRefusal };
}

/** Sums per environment, because an environment has several keys. */
function toEnvironments(entries: readonly Entry[]): EnvironmentCounts[] {
  const sums = new Map<string, { accepted: number; rejected: number }>();
  for (const { environmentId, accepted, rejected } of entries) {
    if (environmentId === null || accepted + rejected === 0) continue;
    const sum = sums.get(environmentId) ?? { accepted: 0, rejected: 0 };
    sums.set(environmentId, { accepted: sum.accepted + accepted, rejected: sum.rejected + rejected });
  }
  return [...sums].map(([environmentId, sum]) => ({ environmentId, ...sum }));
}

/** Counts a request under a valid key that ended in a fault. */
export function countFault(
  usage: Pick<UsageCounter, 'used' | 'refused'>,
  key: CountedKey,
  { fault, traceId }: { readonly fault: unknown; readonly traceId: string },
): void {
  const reason = fault instanceof PublicError ? fault.code : 'INTERNAL_SERVER_ERROR';
  // The request was served: the answer is that the thing does not exist.
  if (reason === 'RESOURCE_NOT_FOUND') usage.used(key, 0, 0);
  else usage.refused(key, { reason, traceId });
}
