/** Reads the activity history of a chain from the public API. */
import { pauseOrThrow } from '@playline/stores';
import { z } from 'zod';
import { UnreachableError } from '../command.ts';

/** The fields that a copy requires; all other fields are copied unchanged. */
const pageSchema = z.object({
  result: z.array(z.looseObject({ id: z.string(), updated_at: z.string() })),
  page: z.object({ previous_cursor: z.string().min(1), next_cursor: z.string().min(1) }),
});

export type Activity = z.infer<typeof pageSchema>['result'][number];

export interface HistoryPage {
  readonly activities: readonly Activity[];
  readonly nextCursor: string;
  /** Cursor of the previous page. */
  readonly previousCursor: string;
}

export interface HistoryOptions {
  /** API URL, without `/v1`. */
  readonly url: string;
  readonly chain: string;
  /** From 1 to 200. */
  readonly pageSize: number;
  /** Query parameters; a cursor is valid only for the same parameters. */
  readonly filters?: Readonly<Record<string, string>>;
  /** Waits; rejects when `stop` is aborted. */
  readonly pause?: (ms: number, stop: AbortSignal) => Promise<void>;
  /** Maximum total waiting time per page. */
  readonly patienceMs: number;
  /** Called before each wait. */
  readonly onWait: (reason: string, ms: number) => void;
}

/** Reads the page after `cursor`, or the first page. */
export type ReadHistory = (cursor: string | null, stop: AbortSignal) => Promise<HistoryPage>;

/** Longer than the API needs for any page. */
const RESPONSE_MAX_MS = 30_000;
const WAIT_FIRST_MS = 500;
const WAIT_MAX_MS = 30_000;
const RETRY_AFTER_MAX_S = 3_600;

/** A page request that can be retried, after `retryAfterMs` or, if null, with exponential backoff. */
class PageFault extends Error {
  override readonly name = 'PageFault';
  readonly retryAfterMs: number | null;

  constructor(message: string, retryAfterMs: number | null = null) {
    super(message);
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * Creates a function that reads pages. After 429, it waits for the requested time. After 5xx, connection errors and
 * invalid pages, it retries with exponential backoff and jitter.
 * @throws UnreachableError after `patienceMs`; Error for any other response
 */
export function createReadHistory(options: HistoryOptions): ReadHistory {
  const { pause = pauseOrThrow, patienceMs, onWait } = options;
  return async (cursor, stop) => {
    let waitedMs = 0;
    for (let attempt = 0; ; attempt++) {
      try {
        return await requestOnce(toPageUrl(options, cursor), stop);
      } catch (fault) {
        stop.throwIfAborted();
        if (!(fault instanceof PageFault)) throw fault;
        if (waitedMs >= patienceMs)
          throw new UnreachableError(
            `the next page of ${options.chain} is unavailable: ${fault.message}. Run the command again to resume`,
          );
        const longestMs = Math.min(WAIT_MAX_MS, WAIT_FIRST_MS * 2 ** attempt);
        const ms = fault.retryAfterMs ?? longestMs * (0.5 + Math.random() / 2);
        // Waits requested by a rate limit do not count toward `patienceMs`.
        if (fault.retryAfterMs === null) waitedMs += longestMs;
        onWait(fault.message, ms);
        await pause(ms, stop);
      }
    }
  };
}

function toPageUrl({ url, chain, pageSize, filters = {} }: HistoryOptions, cursor: string | null): URL {
  const address = new URL(`${url.replace(/\/+$/, '')}/v1/chains/${encodeURIComponent(chain)}/activity-history`);
  address.searchParams.set('page_size', String(pageSize));
  for (const [name, value] of Object.entries(filters)) address.searchParams.set(name, value);
  if (cursor !== null) address.searchParams.set('page_cursor', cursor);
  return address;
}

async function requestOnce(url: URL, stop: AbortSignal): Promise<HistoryPage> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(RESPONSE_MAX_MS)]);
  const { status, headers, text } = await read(url, signal);
  if (status === 429) throw new PageFault('rate limit exceeded', toRetryAfterMs(headers.get('retry-after')));
  if (status >= 500) throw new PageFault(`the chain API responded with ${status}`);
  if (status !== 200) throw new Error(`the chain API responded with ${status}: ${messageOf(text)}`);
  const parsed = pageSchema.safeParse(toJson(text));
  if (!parsed.success) throw new PageFault('the response is not a history page');
  const { result: activities, page } = parsed.data;
  return { activities, nextCursor: page.next_cursor, previousCursor: page.previous_cursor };
}

async function read(url: URL, signal: AbortSignal) {
  try {
    const response = await fetch(url, { signal });
    return { status: response.status, headers: response.headers, text: await response.text() };
  } catch {
    throw new PageFault(`${url.origin} does not respond, or the response was incomplete`);
  }
}

/** Parses whole seconds; returns null for any other format. */
function toRetryAfterMs(text: string | null): number | null {
  return text !== null && /^\d{1,9}$/.test(text) ? Math.min(Number(text), RETRY_AFTER_MAX_S) * 1_000 : null;
}

function toJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const envelopeSchema = z.object({ message: z.string() });
const messageOf = (text: string) => envelopeSchema.safeParse(toJson(text)).data?.message ?? 'no error message';
