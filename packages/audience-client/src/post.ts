import { host } from './host.ts';
import type { MessageRejection } from './message.ts';

/** The part of `fetch` that the client uses. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export type Post = ReturnType<typeof createPost>;

/** A smaller body fits into one packet anyway. */
const GZIP_BYTES_MIN = 1024;

export function createPost(options: {
  url: string;
  headers: Record<string, string>;
  fetch: Fetch;
  requestTimeoutMs: number;
  compress: boolean;
}) {
  const { url, headers, fetch, requestTimeoutMs, compress } = options;
  const underWay = new Set<AbortController>();
  const send = async (text: string, keepalive: boolean): Promise<Answer> => {
    const stop = new AbortController();
    underWay.add(stop);
    // The timer of AbortSignal.timeout cannot be cleared.
    const timer = setTimeout(() => stop.abort(), requestTimeoutMs);
    try {
      const zipped = !keepalive && compress && text.length >= GZIP_BYTES_MIN && (await gzip(text));
      const response = await fetch(url, {
        method: 'POST',
        headers: zipped ? { ...headers, 'content-encoding': 'gzip' } : headers,
        body: zipped || text,
        keepalive,
        // With credentials, an answer that allows any origin could not be read.
        credentials: 'omit',
        signal: stop.signal,
      });
      return await readAnswer(response);
    } catch {
      return { kind: 'later', afterMs: 0 };
    } finally {
      clearTimeout(timer);
      underWay.delete(stop);
    }
  };
  return {
    /** Posts one body and never throws. With `keepalive` the request starts before this returns, and outlives the page. */
    send,
    /** Cancels the requests in flight, whose answer is then `later`. */
    abort: () => {
      for (const stop of underWay) stop.abort();
    },
  };
}

/** Null where the platform cannot compress. */
async function gzip(text: string): Promise<ArrayBuffer | null> {
  const { CompressionStream } = host;
  if (!CompressionStream) return null;
  const body = new Response(text).body?.pipeThrough(new CompressionStream('gzip'));
  return new Response(body).arrayBuffer();
}

/** What an answer means for the batch. */
export type Answer =
  /** Stored, except for the rejected messages. */
  | { kind: 'taken'; rejections: MessageRejection[] }
  /** Not stored, and final. */
  | { kind: 'refused'; rejections: MessageRejection[]; status: number; code?: string; message?: string }
  /** Unknown: the same messages are sent again, `afterMs` later at the earliest. */
  | { kind: 'later'; afterMs: number };

/** Timers overflow after 24 days, so a longer pause is interrupted once a day. */
const RETRY_AFTER_MAX_S = 24 * 60 * 60;

interface Body {
  accepted?: unknown;
  rejections?: MessageRejection[];
  code?: string;
  message?: string;
}

/** A 2xx without a MessagesResponse is not a delivery: it may be a captive portal. */
async function readAnswer(response: Response): Promise<Answer> {
  const { status } = response;
  const body = parseBody(await response.text().catch(() => ''));
  const rejections = Array.isArray(body.rejections) ? body.rejections.filter((one) => one?.messageId) : [];
  if (status >= 200 && status < 300 && typeof body.accepted === 'number') return { kind: 'taken', rejections };
  if (status >= 400 && status < 500 && status !== 429)
    return { kind: 'refused', rejections, status, code: body.code, message: body.message };
  const seconds = Number(response.headers.get('retry-after')) || 0;
  return { kind: 'later', afterMs: Math.min(Math.max(seconds, 0), RETRY_AFTER_MAX_S) * 1000 };
}

function parseBody(text: string): Body {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}
