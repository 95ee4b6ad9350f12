import { createDelivery, openHttpClient } from '../delivery.ts';
import { count, createLatency, type Latency } from '../report.ts';

export interface ApiCall {
  readonly method?: 'GET' | 'POST';
  readonly path: string;
  /** JSON; a string is sent unchanged. */
  readonly body?: unknown;
  /** Headers in addition to, or instead of, those of every call; null leaves one out. */
  readonly headers?: Readonly<Record<string, string | null>>;
}

export interface ApiAnswer {
  /** Null: no final answer came in the time allowed. */
  readonly status: number | null;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Null for invalid JSON. */
  readonly json: unknown;
  readonly text: string;
  /** Whether an earlier attempt may have been accepted without an answer. A 429 does not count: it accepts nothing. */
  readonly isDoubtful: boolean;
}

/** Totals of all calls. */
export interface ApiTally {
  calls: number;
  /** Number of answers 429, each of which was waited for as long as it demands. */
  refused: number;
  waitedMs: number;
  /** Reasons for repeated calls. */
  readonly again: Map<string, number>;
  readonly latency: Latency;
}

/** The interface as a game's server uses it: a call is repeated after a 5xx, a 429 or no answer, and only then. */
export interface MintApi {
  call(call: ApiCall): Promise<ApiAnswer>;
  readonly tally: ApiTally;
  close(): void;
}

export interface MintApiOptions {
  /** Address of the chain interface, without `/v1`. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly onWait: (why: string) => void;
}

/** A caller who has used up the limit's window of five minutes is served again within this time. */
const PATIENCE_MS = 330_000;
const REFUSED = 'status 429';

export function openMintApi({ url, headers: always, onWait }: MintApiOptions): MintApi {
  const client = openHttpClient(url);
  const tally: ApiTally = { calls: 0, refused: 0, waitedMs: 0, again: new Map(), latency: createLatency() };
  return {
    tally,
    close: client.close,
    call: async ({ method = 'GET', path, body, headers = {} }) => {
      let [isDoubtful, refusedAt] = [false, Number.NaN];
      const deliver = createDelivery({
        client,
        totalMaxMs: PATIENCE_MS,
        onRetry: (reason) => {
          count(tally.again, reason);
          isDoubtful ||= reason !== REFUSED;
          if (reason === REFUSED) tally.refused++;
          if (reason === REFUSED && Number.isNaN(refusedAt)) refusedAt = performance.now();
          onWait(reason === REFUSED ? 'a limit is used up (429): waiting as long as the answer says' : reason);
        },
      });
      const startedAt = performance.now();
      const delivered = await deliver({ method, path, headers: toHeaders(always, headers, body), body: toBytes(body) });
      tally.calls += delivered.tries;
      if (!Number.isNaN(refusedAt)) tally.waitedMs += performance.now() - refusedAt;
      if (delivered.kind === 'given up')
        return { status: null, headers: {}, json: null, text: delivered.reason, isDoubtful };
      if (delivered.tries === 1) tally.latency.add(performance.now() - startedAt);
      const { status, text, headers: shown } = delivered.answer;
      return { status, headers: shown, json: toJson(text), text, isDoubtful };
    },
  };
}

function toHeaders(
  always: Readonly<Record<string, string>>,
  given: NonNullable<ApiCall['headers']>,
  body: unknown,
): Record<string, string> {
  const all = { ...always, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...given };
  return Object.fromEntries(Object.entries(all).filter((pair): pair is [string, string] => pair[1] !== null));
}

function toBytes(body: unknown): Buffer {
  if (body === undefined) return Buffer.alloc(0);
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}

function toJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Enough of an unexpected answer to recognise it. */
const SHOWN_CHARACTERS_MAX = 300;

/** An answer as the text of a difference. */
export const toWords = ({ status, text }: ApiAnswer): string =>
  status === null ? `was not answered (${text})` : `was answered ${status}: ${text.slice(0, SHOWN_CHARACTERS_MAX)}`;

/** An error envelope, as far as it is checked. */
export interface ShownEnvelope {
  readonly code?: unknown;
  readonly details?: { readonly errors?: readonly { readonly field?: unknown }[]; readonly values?: unknown } | null;
}

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
  return remaining! >= 0 && remaining! <= limit! ? null : `${remaining} of ${limit} are left`;
}

/** Remaining units of the refresh quota according to an answer; null when the answer has none. */
export function remainingRefreshesOf({ headers }: ApiAnswer): number | null {
  const text = headers[NAMES.refresh[2]];
  return typeof text === 'string' && /^\d+$/.test(text) ? Number(text) : null;
}
