import { host } from './host.ts';
import type { MessageRejection } from './message.ts';

/** The subset of `fetch` that the client uses. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export type Post = ReturnType<typeof createPost>;

/** Smaller bodies fit into one packet, so compression has no benefit. */
const GZIP_BYTES_MIN = 1024;

export function createPost(options: {
  url: string;
  headers: Record<string, string>;
  fetch: Fetch;
  requestTimeoutMs: number;
  compress: boolean;
}) {
  const { url, headers, fetch, requestTimeoutMs, compress } = options;
  const inFlight = new Set<AbortController>();
  const send = async (text: string, keepalive: boolean): Promise<PostResult> => {
    const stop = new AbortController();
    inFlight.add(stop);
    // Not AbortSignal.timeout, because its timer cannot be cleared.
    const timer = setTimeout(() => stop.abort(), requestTimeoutMs);
    try {
      const zipped = !keepalive && compress && text.length >= GZIP_BYTES_MIN && (await gzip(text));
      const response = await fetch(url, {
        method: 'POST',
        headers: zipped ? { ...headers, 'content-encoding': 'gzip' } : headers,
        body: zipped || text,
        keepalive,
        // Browsers do not expose responses with `access-control-allow-origin: *` to requests with credentials.
        credentials: 'omit',
        signal: stop.signal,
      });
      return await readResult(response);
    } catch {
      return { kind: 'retry', afterMs: 0 };
    } finally {
      clearTimeout(timer);
      inFlight.delete(stop);
    }
  };
  return {
    /** Posts a body and never throws. With `keepalive`, the request starts synchronously and outlives the page. */
    send,
    /** Cancels all in-flight requests, which then resolve to `retry`. */
    abort: () => {
      for (const stop of inFlight) stop.abort();
    },
  };
}

/** Returns null if the platform does not support compression. */
async function gzip(text: string): Promise<ArrayBuffer | null> {
  const { CompressionStream } = host;
  if (!CompressionStream) return null;
  const body = new Response(text).body?.pipeThrough(new CompressionStream('gzip'));
  return new Response(body).arrayBuffer();
}

/** Outcome of posting a batch. */
export type PostResult =
  /** Stored, except for rejected messages. */
  | { kind: 'accepted'; rejections: MessageRejection[] }
  /** Not stored. Must not be retried. */
  | { kind: 'refused'; rejections: MessageRejection[]; status: number; code?: string; message?: string }
  /** Possibly stored. Must be resent, at the earliest after `afterMs`. */
  | { kind: 'retry'; afterMs: number };

/** Limits each wait to a day, because timers overflow after 24 days. */
const RETRY_AFTER_MAX_S = 24 * 60 * 60;

interface Body {
  accepted?: unknown;
  rejections?: MessageRejection[];
  code?: string;
  message?: string;
}

/** A 2xx response without a MessagesResponse does not confirm delivery, because it may come from a captive portal. */
async function readResult(response: Response): Promise<PostResult> {
  const { status } = response;
  const body = parseBody(await response.text().catch(() => ''));
  const rejections = Array.isArray(body.rejections) ? body.rejections.filter((rejection) => rejection?.messageId) : [];
  if (status >= 200 && status < 300 && typeof body.accepted === 'number') return { kind: 'accepted', rejections };
  if (status >= 400 && status < 500 && status !== 429)
    return { kind: 'refused', rejections, status, code: body.code, message: body.message };
  const seconds = Number(response.headers.get('retry-after')) || 0;
  return { kind: 'retry', afterMs: Math.min(Math.max(seconds, 0), RETRY_AFTER_MAX_S) * 1000 };
}

function parseBody(text: string): Body {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}
