/** What a project may use: `burst` units at once, `perSecond` in the long run. */
export interface QuotaPolicy {
  readonly kind: 'mint' | 'refresh';
  readonly perSecond: number;
  readonly burst: number;
}

/** Where a project stands. */
export interface QuotaStanding {
  /** False: nothing was taken. */
  readonly isAllowed: boolean;
  readonly remaining: number;
  /** Milliseconds until all of it is there again. */
  readonly fullInMs: number;
  /** Whole seconds until as much as was asked for is there; 0 when it was. */
  readonly retryAfterS: number;
}

/** Quotas of projects, counted by all processes together. */
export interface Quotas {
  /** Takes all units or none, in one step; a negative number gives units back. */
  take(projectId: string, policy: QuotaPolicy, units: number): Promise<QuotaStanding>;
}

const ROUNDING = 1e-6;

/**
 * @param backlogMs until the bucket is full, with what was taken
 * @param lackMs until what was asked for is there; 0 when it was
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

/** The four values that answers tell a caller, as texts. */
export interface QuotaTexts {
  readonly limit: string;
  /** ISO 8601: when all of it is there again. */
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
