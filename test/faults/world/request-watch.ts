/** Watches the HTTP requests and answers of one connection, to lose an answer. */
export interface RequestWatch {
  /** A chunk as text to match. The first line of a request has the statement, percent-encoded. */
  textOf(chunk: Buffer): string;
  /** Drops the answer from now on. Calls `onLost` when the whole answer was dropped. */
  lose(onLost: () => void): void;
  readonly isLosing: boolean;
  /** True when the whole answer was dropped. */
  readonly isLost: boolean;
  swallow(chunk: Buffer): void;
}

/** Long enough for the longest statement of the services with its settings. */
const HEAD_BYTES_MAX = 64 * 1024;
const CHUNKED_END = '0\r\n\r\n';

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return text;
  }
}

/** Whether an HTTP/1.1 answer is complete. */
export function isWholeAnswer(text: string): boolean {
  const split = text.indexOf('\r\n\r\n');
  if (split < 0) return false;
  const head = text.slice(0, split).toLowerCase();
  const body = text.slice(split + 4);
  const length = /\r\ncontent-length: *(\d+)/.exec(head)?.[1];
  if (length !== undefined) return body.length >= Number(length);
  return body === CHUNKED_END || body.endsWith(`\r\n${CHUNKED_END}`);
}

export function createRequestWatch(): RequestWatch {
  let onLost: (() => void) | null = null;
  let answer = '';
  let isLost = false;
  return {
    textOf: (chunk) => {
      const text = chunk.subarray(0, HEAD_BYTES_MAX).toString('latin1');
      return text.startsWith('POST ') || text.startsWith('GET ') ? decode(text.split('\r\n', 1)[0]!) : text;
    },
    lose: (notify) => {
      onLost = notify;
      answer = '';
    },
    get isLosing() {
      return onLost !== null;
    },
    get isLost() {
      return isLost;
    },
    swallow: (chunk) => {
      answer += chunk.toString('latin1');
      if (isLost || !isWholeAnswer(answer)) return;
      isLost = true;
      onLost?.();
    },
  };
}
