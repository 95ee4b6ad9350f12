import { smallMessage } from '@playline/testkit';
import { expect } from 'vitest';

/** A message as a client sends it: any JSON, valid or not. */
export type SentMessage = Record<string, unknown>;

/** Creates a message with only the required fields. `extra` adds, replaces or (with undefined) removes fields. */
export const message = (type: string, extra: SentMessage = {}): SentMessage => smallMessage(type, extra);

export const track = (extra: SentMessage = {}): SentMessage => message('track', extra);

/** Creates a message with the required context fields and `extra` in the context. */
export const withContext = (extra: SentMessage = {}): SentMessage =>
  track({ context: { library: 'playline-web', libraryVersion: '1.2.3', ...extra } });

export interface ClientResponse {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: the tests check the body, so a type would duplicate the checks
  body: any;
}

export interface Client {
  /** Address of the gateway. */
  readonly base: string;
  /** Sends a request unchanged. */
  request(path: string, init?: RequestInit): Promise<ClientResponse>;
  /** Posts a body to `/v1/audience/messages` with the publishable key. Objects are sent as JSON. */
  post(body: unknown, headers?: Record<string, string>): Promise<ClientResponse>;
  /** Posts the messages as a batch. */
  send(...messages: unknown[]): Promise<ClientResponse>;
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

/** Checks all fields of the error envelope, and the trace id in the header. */
export function expectEnvelope(response: ClientResponse, status: number, code: string): void {
  expect(response.status).toBe(status);
  expect(Object.keys(response.body).sort()).toEqual(['code', 'details', 'link', 'message', 'trace_id']);
  expect(response.body.code).toBe(code);
  expect(response.body.message).toMatch(/\S/);
  expect(response.body.link).toMatch(/^https?:\/\//);
  expect(response.body.trace_id).toMatch(/^[0-9a-f]{32}$/);
  expect(response.headers.get('x-trace-id')).toBe(response.body.trace_id);
}

export function expectAccepted(response: ClientResponse, accepted = 1): void {
  expect(response.body).toEqual({ success: true, accepted, rejected: 0, rejections: [] });
  expect(response.status).toBe(200);
}

/** Checks that the batch's only message was rejected with exactly these `CODE field` pairs. */
export function expectRejected(response: ClientResponse, ...expected: string[]): void {
  expect(response.status).toBe(400);
  expect(response.body).toMatchObject({ success: false, accepted: 0, rejected: 1 });
  expect(errorsOf(response)).toEqual([...expected].sort());
}

/** Returns the errors of a rejection as sorted `CODE field` strings. Checks that each error has a message. */
export function errorsOf(response: ClientResponse, entry = 0): string[] {
  const errors: { field: string; code: string; message: string }[] = response.body.rejections[entry].errors;
  for (const error of errors) {
    expect(Object.keys(error).sort()).toEqual(['code', 'field', 'message']);
    expect(error.message).toMatch(/\S/);
  }
  return errors.map(({ code, field }) => `${code} ${field}`).sort();
}

/** Checks the structured header fields of the IETF draft: a quoted policy name with q (quota) or r (remaining). */
export function expectRateLimitFields({ headers }: ClientResponse): void {
  expect(headers.get('ratelimit-policy')).toMatch(/^"[^"]+"(;[a-z]+=[^;,]+)*;q=\d+(;[a-z]+=[^;,]+)*$/);
  expect(headers.get('ratelimit')).toMatch(/^"[^"]+"(;[a-z]+=[^;,]+)*;r=\d+(;[a-z]+=[^;,]+)*$/);
}
