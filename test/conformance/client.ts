import { smallMessage } from '@playline/testkit';
import { expect } from 'vitest';

/** A message as a client sends it: any JSON, valid or not. */
export type Sent = Record<string, unknown>;

/** A message with what every type needs and nothing more. `extra` adds, replaces or (with undefined) removes fields. */
export const message = (type: string, extra: Sent = {}): Sent => smallMessage(type, extra);

export const track = (extra: Sent = {}): Sent => message('track', extra);

/** A message with the context that clients always send, and `extra` in that context. */
export const withContext = (extra: Sent = {}): Sent =>
  track({ context: { library: 'playline-web', libraryVersion: '1.2.3', ...extra } });

export interface Answer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: the tests show what the body must be, the type would repeat it
  body: any;
}

export interface Client {
  /** Address of the gateway. */
  readonly base: string;
  /** Sends any request as given. A body that is neither bytes nor text is sent as JSON. */
  request(path: string, init?: RequestInit): Promise<Answer>;
  /** POST /v1/audience/messages with the publishable key of the test's environment. */
  post(body: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** Posts the messages as one batch. */
  send(...messages: unknown[]): Promise<Answer>;
}

export const MESSAGES_PATH = '/v1/audience/messages';
export const CONSENT_PATH = '/v1/audience/tracking-consent';
export const DATA_PATH = '/v1/audience/data';

export function createClient(base: string, key: string): Client {
  const request: Client['request'] = async (path, init = {}) => {
    const response = await fetch(base + path, init);
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: text === '' ? null : JSON.parse(text) };
  };
  const post: Client['post'] = (body, headers = {}) =>
    request(MESSAGES_PATH, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-publishable-key': key, ...headers },
      body:
        typeof body === 'string' || body instanceof Uint8Array ? (body as RequestInit['body']) : JSON.stringify(body),
    });
  return { base, request, post, send: (...messages) => post({ messages }) };
}

/** Checks the error envelope of the contract: every member, and the trace id in the header. */
export function expectEnvelope(answer: Answer, status: number, code: string): void {
  expect(answer.status).toBe(status);
  expect(Object.keys(answer.body).sort()).toEqual(['code', 'details', 'link', 'message', 'trace_id']);
  expect(answer.body.code).toBe(code);
  expect(answer.body.message).toMatch(/\S/);
  expect(answer.body.link).toMatch(/^https?:\/\//);
  expect(answer.body.trace_id).toMatch(/^[0-9a-f]{32}$/);
  expect(answer.headers.get('x-trace-id')).toBe(answer.body.trace_id);
}

export function expectAccepted(answer: Answer, accepted = 1): void {
  expect(answer.body).toEqual({ success: true, accepted, rejected: 0, rejections: [] });
  expect(answer.status).toBe(200);
}

/** Checks that the only message of the batch was rejected with exactly these `CODE field` pairs. */
export function expectRejected(answer: Answer, ...expected: string[]): void {
  expect(answer.status).toBe(400);
  expect(answer.body).toMatchObject({ success: false, accepted: 0, rejected: 1 });
  expect(errorsOf(answer)).toEqual([...expected].sort());
}

/** `CODE field` of every error of the first rejection, sorted. Checks that each error has a message. */
export function errorsOf(answer: Answer, entry = 0): string[] {
  const errors: { field: string; code: string; message: string }[] = answer.body.rejections[entry].errors;
  for (const error of errors) {
    expect(Object.keys(error).sort()).toEqual(['code', 'field', 'message']);
    expect(error.message).toMatch(/\S/);
  }
  return errors.map(({ code, field }) => `${code} ${field}`).sort();
}

/** Structured fields as in the IETF draft: a quoted policy name with q (quota), and with r (remaining). */
export function expectRateLimitFields({ headers }: Answer): void {
  expect(headers.get('ratelimit-policy')).toMatch(/^"[^"]+"(;[a-z]+=[^;,]+)*;q=\d+(;[a-z]+=[^;,]+)*$/);
  expect(headers.get('ratelimit')).toMatch(/^"[^"]+"(;[a-z]+=[^;,]+)*;r=\d+(;[a-z]+=[^;,]+)*$/);
}
