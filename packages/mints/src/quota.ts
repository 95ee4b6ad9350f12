/** Quota of a project, a token bucket: `burst` units at once, `perSecond` in the long run. */
export interface QuotaPolicy {
  readonly kind: 'mint' | 'refresh';
  readonly perSecond: number;
  readonly burst: number;
}

/** State of a project's quota after a call. */
export interface QuotaStanding {
  /** When false, nothing was taken. */
  readonly isAllowed: boolean;
  readonly remaining: number;
  /** Milliseconds until the bucket is full. */
  readonly fullInMs: number;
  /** Whole seconds until the units that were asked for are available; 0 when they were. */
  readonly retryAfterS: number;
}

/** Quotas of projects, shared by all processes. */
export interface Quotas {
  /** Takes all units or none, in one step; a negative number gives units back. */
  take(projectId: string, policy: QuotaPolicy, units: number): Promise<QuotaStanding>;
}

const ROUNDING = 1e-6;

/**
 * @param backlogMs until the bucket is full, after the units were taken
 * @param lackMs until the units that were asked for are available; 0 when they were
 */
export function toQuotaStanding(policy: QuotaPolicy, backlogMs: number, lackMs: number): QuotaStanding {
  const left = policy.burst - (backlogMs / 1000) * policy.perSecond;
  return {
    isAllowed: lackMs === 0,
    remaining: Math.max(0, Math.floor(left + ROUNDING)),
    fullInMs: backlogMs,
    retryAfterS: lackMs === 0 ? 0 : Math.max(1, Math.ceil(lackMs / 1000 - ROUNDING)),
  };
}

/** The four values of a quota in answers, as texts. */
export interface QuotaTexts {
  readonly limit: string;
  /** ISO 8601 time when the bucket is full. */
  readonly reset: string;
  readonly remaining: string;
  readonly retryAfter: string;
}

export function toQuotaTexts(policy: QuotaPolicy, standing: QuotaStanding, nowAtMs: number): QuotaTexts {
  return {
    limit: String(policy.burst),
    reset: new Date(nowAtMs + standing.fullInMs).toISOString(),
    remaining: String(standing.remaining),
    retryAfter: String(standing.retryAfterS),
  };
}
