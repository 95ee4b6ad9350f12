import { PublicError } from '@playline/errors';
import type { Exchange, HeaderList } from '@playline/http';
import {
  type QuotaPolicy,
  QuotaSpent,
  type QuotaStatus,
  type Quotas,
  type QuotaTexts,
  toQuotaTexts,
} from '@playline/mints';

const MS_PER_S = 1000;

/** Names of a quota's header fields in the order limit, reset, remaining; and of the members of a body. */
const NAMES = {
  mint: {
    limit: 'imx-mint-requests-limit',
    reset: 'imx-mint-requests-limit-reset',
    remaining: 'imx-remaining-mint-requests',
    retryAfter: 'imx-mint-requests-retry-after',
  },
  refresh: {
    limit: 'imx-refreshes-limit',
    reset: 'imx-refresh-limit-reset',
    remaining: 'imx-remaining-refreshes',
    retryAfter: 'retry-after',
  },
} as const satisfies Record<QuotaPolicy['kind'], Record<keyof QuotaTexts, string>>;

/**
 * The header fields with the state of a project's quota.
 * @param isRefused the envelope of a 429 has its `Retry-After` already
 */
export function toQuotaHeaders(kind: QuotaPolicy['kind'], texts: QuotaTexts, isRefused: boolean): HeaderList {
  const names = NAMES[kind];
  const headers = ['limit', 'reset', 'remaining'] as const;
  const list = headers.flatMap((name) => [names[name], texts[name]]);
  if (kind === 'refresh' && isRefused) return list;
  return [...list, names.retryAfter, texts.retryAfter];
}

/** The same as the body of an answer: `imx_mint_requests_limit` and so on. */
export function toQuotaBody(kind: QuotaPolicy['kind'], texts: QuotaTexts): Record<string, string> {
  const names = Object.entries(NAMES[kind]) as [keyof QuotaTexts, string][];
  return Object.fromEntries(names.map(([name, header]) => [header.replaceAll('-', '_'), texts[name]]));
}

/**
 * Adds the quota to a 429 whose project is not known yet, such as one of the limit of calls. The remaining number is
 * then 0 until the call may be sent again.
 */
export function showLimited(exchange: Exchange, policy: QuotaPolicy, fault: unknown): void {
  if (!(fault instanceof PublicError) || fault.retryAfterS === null) return;
  const { retryAfterS } = fault;
  show(exchange, policy, { isAllowed: false, remaining: 0, fullInMs: retryAfterS * MS_PER_S, retryAfterS });
}

/** The quota of the project of a call. */
export interface ProjectQuota {
  readonly quotas: Quotas;
  readonly policy: QuotaPolicy;
  readonly projectId: string;
}

/**
 * Adds the quota of the project to a 429, also where something else ran out, such as memory for bodies: then it is the
 * quota that is left.
 */
export async function showQuota(exchange: Exchange, { quotas, policy, projectId }: ProjectQuota, fault: unknown) {
  if (!(fault instanceof PublicError) || fault.retryAfterS === null) return;
  const { retryAfterS } = fault;
  if (fault instanceof QuotaSpent) return show(exchange, policy, fault.quota);
  // Without an answer of the store there is no quota to show.
  const left = await quotas.take(projectId, policy, 0).catch(() => null);
  if (left !== null) show(exchange, policy, { ...left, retryAfterS });
}

function show(exchange: Exchange, policy: QuotaPolicy, standing: QuotaStatus): void {
  const headers = toQuotaHeaders(policy.kind, toQuotaTexts(policy, standing, Date.now()), true);
  const late = exchange.lateHeaders;
  exchange.lateHeaders = () => [...late(), ...headers];
}
