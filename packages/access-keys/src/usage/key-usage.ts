export const MINUTE_MS = 60_000;
/** Longer than any query needs: the last hour and the hour before. */
export const MINUTES_KEPT = 120;
/** Includes the present minute. */
export const HOUR_MINUTES = 60;

/** A request that was refused although its key is valid. */
export interface Refusal {
  /** Epoch milliseconds. */
  readonly at: number;
  /** Code of the answer, such as TOO_MANY_REQUESTS_ERROR; nothing that a client has sent. */
  readonly reason: string;
  readonly traceId: string;
}

/** Counts of one process for a key. */
export interface KeyCounts {
  readonly keyId: string;
  /** Number of requests, including refused ones. */
  readonly uses: number;
  readonly refusals: number;
  /** Epoch milliseconds. */
  readonly lastUsedAt: number;
  readonly lastRefusal: Refusal | null;
}

/** Counts of one process for the messages of an environment. */
export interface EnvironmentCounts {
  readonly environmentId: string;
  readonly accepted: number;
  readonly rejected: number;
}

/** Counts of one process in one interval, which is shorter than a minute. */
export interface UsageCounts {
  /** Epoch milliseconds: start of the minute of the counts. */
  readonly minuteAt: number;
  readonly keys: readonly KeyCounts[];
  readonly environments: readonly EnvironmentCounts[];
}

/** Use of a key. May be ten seconds old, because processes report at that interval. */
export interface KeyUse {
  /** Epoch milliseconds; null when no use is known. */
  readonly lastUsedAt: number | null;
  /** Number of requests in the last hour, including refused ones. */
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

/** Sums of the counts of all processes. They are only shown and decide nothing, so a loss does no harm. */
export interface KeyUsage {
  /** Adds the counts of one process. @throws when the store fails; some counts may have been added */
  add(counts: UsageCounts): Promise<void>;
  /** The result has an entry for every requested key. @throws when the store cannot answer */
  readKeys(keyIds: readonly string[]): Promise<ReadonlyMap<string, KeyUse>>;
  /**
   * The last minutes including the present one, oldest first, without gaps.
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

/** Start times of so many minutes, up to the minute of an instant, oldest first. */
export function minutesUpTo(instantMs: number, minutes: number): number[] {
  const last = minuteOf(instantMs);
  return Array.from({ length: minutes }, (_, index) => last - (minutes - 1 - index) * MINUTE_MS);
}

/** Rate of messages of an environment over some minutes. */
export interface EnvironmentRate {
  /** Accepted messages per second. */
  readonly perSecond: number;
  /** Between 0 and 1; 0 without messages. */
  readonly rejectedShare: number;
}

/** The rate over complete minutes, so without the last one, which is the present minute. */
export function toEnvironmentRate(minutes: readonly EnvironmentMinute[]): EnvironmentRate {
  const whole = minutes.slice(0, -1);
  const accepted = whole.reduce((sum, minute) => sum + minute.accepted, 0);
  const rejected = whole.reduce((sum, minute) => sum + minute.rejected, 0);
  return {
    perSecond: whole.length === 0 ? 0 : accepted / ((whole.length * MINUTE_MS) / 1000),
    rejectedShare: accepted + rejected === 0 ? 0 : rejected / (accepted + rejected),
  };
}
