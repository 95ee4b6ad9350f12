import { type Answer, readAnswer } from './answer.ts';
import { host } from './host.ts';

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
