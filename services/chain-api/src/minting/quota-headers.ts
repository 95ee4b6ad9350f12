import { PublicError } from '@playline/errors';
import type { Exchange, HeaderList } from '@playline/http';
import { type QuotaPolicy, QuotaSpent, type QuotaTexts, toQuotaTexts } from '@playline/mints';

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
 * Adds the quota to a 429. If the call was refused for another reason (calls of an address, room for bodies), its
 * project may be unknown. The remaining number is then 0 until the call may be sent again.
 */
export function showLimited(exchange: Exchange, policy: QuotaPolicy, fault: unknown): void {
  if (!(fault instanceof PublicError) || fault.retryAfterS === null) return;
  const { retryAfterS } = fault;
  const nothing = { isAllowed: false, remaining: 0, fullInMs: retryAfterS * MS_PER_S, retryAfterS };
  const standing = fault instanceof QuotaSpent ? fault.standing : nothing;
  const headers = toQuotaHeaders(policy.kind, toQuotaTexts(policy, standing, Date.now()), true);
  const late = exchange.lateHeaders;
  exchange.lateHeaders = () => [...late(), ...headers];
}
