import type { Exchange, HeaderList } from '@playline/http';
import { type QuotaPolicy, type QuotaSpent, type QuotaTexts, toQuotaTexts } from '@playline/mints';

/** What the header fields of a quota are called, in the order limit, reset, remaining; and the member names of a body. */
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
 * The header fields that say where a project stands.
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

/** Lets the refusal say where the project stands. */
export function showSpent(exchange: Exchange, policy: QuotaPolicy, { standing }: QuotaSpent): void {
  const headers = toQuotaHeaders(policy.kind, toQuotaTexts(policy, standing, Date.now()), true);
  const late = exchange.lateHeaders;
  exchange.lateHeaders = () => [...late(), ...headers];
}
