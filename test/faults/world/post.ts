import { type Agent, request } from 'node:http';

/** Outcome of one request. */
export interface Attempt {
  /** Milliseconds of this process's clock (`performance.now`). */
  readonly beganAt: number;
  readonly endedAt: number;
  /** HTTP status; 0 when no complete answer came. */
  readonly status: number;
  /** Text of the answer, or of the error when there was none. */
  readonly text: string;
  readonly connection: string | undefined;
}

export interface Post {
  url: string;
  key: string;
  body: string | Buffer;
  agent?: Agent;
  headers?: Record<string, string>;
  method?: string;
}

export const KEY_HEADER = 'x-service-publishable-key';
export const MESSAGES_PATH = '/v1/audience/messages';
/** As long as clients of the contract wait, and much longer than the gateway's deadline. */
const ANSWER_MAX_MS = 30_000;

/** Posts a body to the messages route; never throws. */
export function post({ url, key, body, agent, headers = {}, method = 'POST' }: Post): Promise<Attempt> {
  const beganAt = performance.now();
  return new Promise((resolve) => {
    const settle = (status: number, text: string, connection?: string) =>
      resolve({ beganAt, endedAt: performance.now(), status, text, connection });
    const sent = request(url + MESSAGES_PATH, {
      method,
      agent,
      headers: {
        'content-type': 'application/json',
        'content-length': String(Buffer.byteLength(body)),
        [KEY_HEADER]: key,
        ...headers,
      },
      timeout: ANSWER_MAX_MS,
    });
    sent.on('timeout', () => sent.destroy(new Error(`no answer within ${ANSWER_MAX_MS} ms`)));
    sent.on('error', (error) => settle(0, error.message));
    sent.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', (error) => settle(0, error.message));
      response.on('end', () =>
        settle(response.statusCode ?? 0, Buffer.concat(chunks).toString(), response.headers.connection),
      );
    });
    sent.end(body);
  });
}
