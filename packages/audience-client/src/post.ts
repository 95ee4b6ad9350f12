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
   * Posts one body and says what the answer means; never throws. With `keepalive` the request is started before this
   * returns and outlives the page.
   */
  send(body: string, keepalive: boolean): Promise<Answer>;
  /** Ends what is under way: it is `later` then. */
  abort(): void;
}

/** Below this a body fits one packet whether compressed or not. */
const GZIP_BYTES_MIN = 1024;

export function createPost({ url, headers, fetch, requestTimeoutMs, compress }: PostOptions): Post {
  const underWay = new Set<AbortController>();
  const send = async (text: string, keepalive: boolean): Promise<Answer> => {
    const stop = new AbortController();
    underWay.add(stop);
    // Not AbortSignal.timeout: its timer cannot be taken back when the answer is there.
    const timer = setTimeout(() => stop.abort(), requestTimeoutMs);
    try {
      const zipped = !keepalive && compress && text.length >= GZIP_BYTES_MIN && (await gzip(text));
      const response = await fetch(url, {
        method: 'POST',
        headers: zipped ? { ...headers, 'content-encoding': 'gzip' } : headers,
        body: zipped || text,
        keepalive,
        // Credentials would need an origin by name, which an answer for any origin does not give.
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

/** `null` where the platform cannot: the body then goes as it is. */
async function gzip(text: string): Promise<ArrayBuffer | null> {
  const { CompressionStream } = host;
  if (!CompressionStream) return null;
  const body = new Response(text).body?.pipeThrough(new CompressionStream('gzip'));
  return new Response(body).arrayBuffer();
}
