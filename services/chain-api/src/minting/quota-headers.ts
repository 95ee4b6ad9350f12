import { PublicError } from '@playline/errors';
import type { Exchange, HeaderList } from '@playline/http';
import {
  QuotaExhausted,
  type QuotaPolicy,
  type QuotaStatus,
  type Quotas,
  type QuotaTexts,
  toQuotaTexts,
} from '@playline/mints';

const MS_PER_S = 1000;

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

/** @param isRefused true if the response is a 429, which already has `Retry-After` */
export function toQuotaHeaders(kind: QuotaPolicy['kind'], texts: QuotaTexts, isRefused: boolean): HeaderList {
  const names = NAMES[kind];
  const headers = ['limit', 'reset', 'remaining'] as const;
  const list = headers.flatMap((name) => [names[name], texts[name]]);
  if (kind === 'refresh' && isRefused) return list;
  return [...list, names.retryAfter, texts.retryAfter];
}

/** Quota fields of a response body, such as `imx_mint_requests_limit`. */
export function toQuotaBody(kind: QuotaPolicy['kind'], texts: QuotaTexts): Record<string, string> {
  const names = Object.entries(NAMES[kind]) as [keyof QuotaTexts, string][];
  return Object.fromEntries(names.map(([name, header]) => [header.replaceAll('-', '_'), texts[name]]));
}

/** Adds the headers of a used-up quota to a 429 that occurs before the project is known. */
export function addEmptyQuotaHeaders(exchange: Exchange, policy: QuotaPolicy, fault: unknown): void {
  if (!(fault instanceof PublicError) || fault.retryAfterS === null) return;
  const { retryAfterS } = fault;
  show(exchange, policy, { isAllowed: false, remaining: 0, fullInMs: retryAfterS * MS_PER_S, retryAfterS });
}

/** Adds the headers of the current quota to a 429. */
export async function addQuotaHeaders(
  exchange: Exchange,
  { quotas, policy, projectId }: { quotas: Quotas; policy: QuotaPolicy; projectId: string },
  fault: unknown,
) {
  if (!(fault instanceof PublicError) || fault.retryAfterS === null) return;
  const { retryAfterS } = fault;
  if (fault instanceof QuotaExhausted) return show(exchange, policy, fault.quota);
  // The quota headers are omitted if the store is unavailable.
  const status = await quotas.take(projectId, policy, 0).catch(() => null);
  if (status !== null) show(exchange, policy, { ...status, retryAfterS });
}

function show(exchange: Exchange, policy: QuotaPolicy, status: QuotaStatus): void {
  const headers = toQuotaHeaders(policy.kind, toQuotaTexts(policy, status, Date.now()), true);
  const previous = exchange.lateHeaders;
  exchange.lateHeaders = () => [...previous(), ...headers];
}
