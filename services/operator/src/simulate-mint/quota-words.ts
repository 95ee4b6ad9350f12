import type { ApiAnswer } from './api.ts';

/** Names of the four values of a quota in answers: limit, reset, remaining, retry after. */
const NAMES = {
  mint: [
    'imx-mint-requests-limit',
    'imx-mint-requests-limit-reset',
    'imx-remaining-mint-requests',
    'imx-mint-requests-retry-after',
  ],
  refresh: ['imx-refreshes-limit', 'imx-refresh-limit-reset', 'imx-remaining-refreshes', 'retry-after'],
} as const;

/** What is wrong with the quota of an answer: all headers must be there, and the body of a 202 must agree with them. */
export function describeQuota(kind: keyof typeof NAMES, { status, headers, json }: ApiAnswer): string | null {
  for (const name of NAMES[kind]) {
    const [header, member] = [headers[name], (json as Record<string, unknown> | null)?.[name.replaceAll('-', '_')]];
    if (typeof header !== 'string' || header === '') return `the header ${name} is missing`;
    if (status === 202 && member !== header) return `${name} is ${header} as a header and ${member} in the body`;
  }
  const [limit, , remaining] = NAMES[kind].map((name) => Number(headers[name]));
  return remaining! >= 0 && remaining! <= limit! ? null : `${remaining} of ${limit} are said to be left`;
}

/** Remaining units of the refresh quota according to an answer; null when it does not say. */
export function remainingRefreshesOf({ headers }: ApiAnswer): number | null {
  const text = headers[NAMES.refresh[2]];
  return typeof text === 'string' && /^\d+$/.test(text) ? Number(text) : null;
}
