import { host } from './host.ts';
import type { MessageRejection } from './message.ts';

/** The part of `fetch` that the client uses. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface PostOptions {
  url: string;
  headers: Record<string, string>;
  fetch: Fetch;
  requestTimeoutMs: number;
  compress: boolean;
}

export interface Post {
  /**
   * Posts one body and returns what the answer means; never throws. With `keepalive` the request starts before this
   * returns, and outlives the page.
   */
  send(body: string, keepalive: boolean): Promise<Answer>;
  /** Cancels the requests under way. Their answer then counts as `later`. */
  abort(): void;
}

/** A smaller body fits into one packet with or without compression. */
const GZIP_BYTES_MIN = 1024;

export function createPost({ url, headers, fetch, requestTimeoutMs, compress }: PostOptions): Post {
  const underWay = new Set<AbortController>();
  const send = async (text: string, keepalive: boolean): Promise<Answer> => {
    const stop = new AbortController();
    underWay.add(stop);
    // Not AbortSignal.timeout: its timer cannot be cleared once the answer has come.
    const timer = setTimeout(() => stop.abort(), requestTimeoutMs);
    try {
      const zipped = !keepalive && compress && text.length >= GZIP_BYTES_MIN && (await gzip(text));
      const response = await fetch(url, {
        method: 'POST',
        headers: zipped ? { ...headers, 'content-encoding': 'gzip' } : headers,
        body: zipped || text,
        keepalive,
        // Credentials would force the service to name the page's origin; its answer allows any origin.
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
    send,
    abort: () => {
      for (const stop of underWay) stop.abort();
    },
  };
}

/** `null` where the platform cannot compress: the body is then sent uncompressed. */
async function gzip(text: string): Promise<ArrayBuffer | null> {
  const { CompressionStream } = host;
  if (!CompressionStream) return null;
  const body = new Response(text).body?.pipeThrough(new CompressionStream('gzip'));
  return new Response(body).arrayBuffer();
}

/**
 * What an answer means for the batch. A 2xx and any 4xx but 429 are final; after any other answer the batch is sent
 * again.
 */
export type Answer =
  /** Everything but the rejected messages is stored. The batch is never sent again. */
  | { kind: 'taken'; rejections: MessageRejection[] }
  /** Nothing was stored, and sending the batch again would not change that. */
  | { kind: 'refused'; rejections: MessageRejection[]; status: number; code?: string; message?: string }
  /**
   * It is not known what was stored. The same messages are sent again under the same ids, `afterMs` later at the
   * earliest.
   */
  | { kind: 'later'; afterMs: number };

/** Timers overflow after 24 days. If the service asks for a longer pause, the client asks again once a day. */
const RETRY_AFTER_MAX_S = 24 * 60 * 60;

interface Body {
  accepted?: unknown;
  rejections?: MessageRejection[];
  code?: string;
  message?: string;
}

/**
 * Reads an answer to its end. A 2xx whose body is no MessagesResponse does not count as delivery: it may be the login
 * page of a captive portal.
 */
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
