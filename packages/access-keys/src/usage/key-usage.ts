export const MINUTE_MS = 60_000;
/** Longer than anything that is asked: the last hour, and the one before beside it. */
export const MINUTES_KEPT = 120;
/** The present minute is one of them. */
export const HOUR_MINUTES = 60;

/** A request that was refused although its key is good. */
export interface Refusal {
  /** Epoch milliseconds. */
  readonly at: number;
  /** Code of the answer, such as TOO_MANY_REQUESTS_ERROR; nothing that a client has sent. */
  readonly reason: string;
  readonly traceId: string;
}

/** What one process has counted of a key. */
export interface KeyCounts {
  readonly keyId: string;
  /** Requests, refused ones too. */
  readonly uses: number;
  readonly refusals: number;
  /** Epoch milliseconds. */
  readonly lastUsedAt: number;
  readonly lastRefusal: Refusal | null;
}

/** What one process has counted of the messages of an environment. */
export interface EnvironmentCounts {
  readonly environmentId: string;
  readonly accepted: number;
  readonly rejected: number;
}

/** What one process has counted in one go, which is shorter than a minute. */
export interface UsageCounts {
  /** Epoch milliseconds of the start of the minute that it belongs to. */
  readonly minuteAt: number;
  readonly keys: readonly KeyCounts[];
  readonly environments: readonly EnvironmentCounts[];
}

/** What is known of the use of a key. Nothing here is exact to more than ten seconds: processes tell that often. */
export interface KeyUse {
  /** Epoch milliseconds; null when it was never used as far as is known. */
  readonly lastUsedAt: number | null;
  /** Requests in the last hour, refused ones too. */
  readonly usesOfHour: number;
  readonly refusalsOfHour: number;
  readonly lastRefusal: Refusal | null;
}

export const NO_USE: KeyUse = { lastUsedAt: null, usesOfHour: 0, refusalsOfHour: 0, lastRefusal: null };

/** Messages of an environment in one minute. */
export interface EnvironmentMinute {
  /** Epoch milliseconds of its start. */
  readonly minuteAt: number;
  readonly accepted: number;
  readonly rejected: number;
}

/** Counts of all processes together. They are told, not decided by: losing some of them harms nobody. */
export interface KeyUsage {
  /** Adds what one process has counted. @throws when the store does not take it; some of it may stand all the same */
  add(counts: UsageCounts): Promise<void>;
  /** Every key that was asked for has an answer. @throws when the store cannot answer */
  readKeys(keyIds: readonly string[]): Promise<ReadonlyMap<string, KeyUse>>;
  /**
   * The last minutes, the present one too, the oldest first and none left out.
   * @param minutes 1 to `MINUTES_KEPT`
   * @throws when the store cannot answer
   */
  readEnvironments(
    environmentIds: readonly string[],
    minutes: number,
  ): Promise<ReadonlyMap<string, readonly EnvironmentMinute[]>>;
}

/** Start of the minute of an instant, both in epoch milliseconds. */
export function minuteOf(instantMs: number): number {
  return Math.floor(instantMs / MINUTE_MS) * MINUTE_MS;
}

/** Starts of so many minutes up to that of an instant, the oldest first. */
export function minutesUpTo(instantMs: number, minutes: number): number[] {
  const last = minuteOf(instantMs);
  return Array.from({ length: minutes }, (_, index) => last - (minutes - 1 - index) * MINUTE_MS);
}

/** What minutes of an environment come to. */
export interface EnvironmentRate {
  /** Accepted messages a second. */
  readonly perSecond: number;
  /** Between 0 and 1; 0 when nothing came. */
  readonly rejectedShare: number;
}

/** The rate over whole minutes: the present one, which is the last, is left out. */
export function toEnvironmentRate(minutes: readonly EnvironmentMinute[]): EnvironmentRate {
  const whole = minutes.slice(0, -1);
  const accepted = whole.reduce((sum, minute) => sum + minute.accepted, 0);
  const rejected = whole.reduce((sum, minute) => sum + minute.rejected, 0);
  return {
    perSecond: whole.length === 0 ? 0 : accepted / ((whole.length * MINUTE_MS) / 1000),
    rejectedShare: accepted + rejected === 0 ? 0 : rejected / (accepted + rejected),
  };
}
