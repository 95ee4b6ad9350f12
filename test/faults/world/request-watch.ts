/** What is known of the HTTP answers of one connection that shall be lost. */
export interface RequestWatch {
  /** A chunk as text to match: a request's first line holds the statement percent-encoded. */
  textOf(chunk: Buffer): string;
  /** From now on the answer is swallowed; `onLost` is called when it has come whole. */
  lose(onLost: () => void): void;
  readonly isLosing: boolean;
  /** The whole answer has been swallowed. */
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

/** True when an HTTP/1.1 answer has come to its end. */
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
    lose: (told) => {
      onLost = told;
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
