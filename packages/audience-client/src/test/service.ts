import { gunzipSync } from 'node:zlib';
import type { Fetch, Message } from '../index.ts';

/** How the service responds to a request. */
export type Reply =
  /** Accepts all messages. */
  | 'accepted'
  /** Rejects every second message, starting with the first. */
  | 'some rejected'
  /** Rejects all messages: 400 with a MessagesResponse. */
  | 'all rejected'
  /** 400 with the error envelope. */
  | 'malformed'
  | 'unauthorised'
  /** 429, Retry-After: 30. */
  | 'rate limited'
  | 'server error'
  /** Never responds. */
  | 'silent'
  | 'unreachable'
  /** Stores all messages, but the response is lost. */
  | 'response lost'
  /** Returns another server's page with status 200, like a captive portal. */
  | 'captive portal';

export const RETRY_AFTER_S = 30;

export interface ReceivedRequest {
  url: string;
  headers: Record<string, string>;
  messages: Message[];
  /** Size of the body as transmitted. */
  bytes: number;
  keepalive: boolean;
  credentials: string;
  atMs: number;
}

/** An in-memory service that implements the contract, and is passed to clients as `fetch`. */
export interface Service {
  fetch: Fetch;
  requests: ReceivedRequest[];
  /** Responses to the next requests, in order. Later requests get `defaultReply`. */
  replies: Reply[];
  defaultReply: Reply;
  /** Stored messages by id, with all JSON versions that were sent under the id. */
  stored: Map<string, Set<string>>;
  /** Number of requests without a response. */
  inFlight: number;
  inFlightMax: number;
}

export function createService(...replies: Reply[]): Service {
  const service: Service = {
    replies,
    defaultReply: 'accepted' as Reply,
    requests: [],
    stored: new Map(),
    inFlight: 0,
    inFlightMax: 0,
    fetch: async (url, init) => {
      service.inFlight += 1;
      service.inFlightMax = Math.max(service.inFlightMax, service.inFlight);
      try {
        const request = toReceived(url, init);
        service.requests.push(request);
        return await reply(service, request, init.signal ?? new AbortController().signal);
      } finally {
        service.inFlight -= 1;
      }
    },
  };
  return service;
}

function toReceived(url: string, init: RequestInit): ReceivedRequest {
  const headers = Object.fromEntries(new Headers(init.headers));
  const body = typeof init.body === 'string' ? Buffer.from(init.body) : Buffer.from(init.body as ArrayBuffer);
  const text = headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
  const { messages } = JSON.parse(text.toString());
  const { keepalive = false, credentials = '' } = init;
  return { url, headers, messages, bytes: body.length, keepalive, credentials, atMs: Date.now() };
}

async function reply(service: Service, { messages }: ReceivedRequest, signal: AbortSignal): Promise<Response> {
  const kind = service.replies.shift() ?? service.defaultReply;
  signal.throwIfAborted();
  if (kind === 'silent')
    return new Promise((_, fail) => signal.addEventListener('abort', () => fail(signal.reason), { once: true }));
  if (kind === 'unreachable') throw new TypeError('Failed to fetch');
  if (kind === 'captive portal') return new Response('<h1>Please pay for your coffee</h1>');
  if (kind === 'server error') return Response.json({ code: 'INTERNAL_SERVER_ERROR' }, { status: 500 });
  if (kind === 'rate limited')
    return Response.json({}, { status: 429, headers: { 'retry-after': String(RETRY_AFTER_S) } });
  if (kind === 'malformed')
    return Response.json({ code: 'VALIDATION_ERROR', message: 'The batch is empty.' }, { status: 400 });
  if (kind === 'unauthorised')
    return Response.json({ code: 'UNAUTHORISED_REQUEST', message: 'No such key.' }, { status: 401 });
  const rejected = messages.filter((_, at) => kind === 'all rejected' || (kind === 'some rejected' && at % 2 === 0));
  for (const message of messages.filter((each) => !rejected.includes(each))) {
    const versions = service.stored.get(message.messageId) ?? new Set();
    service.stored.set(message.messageId, versions.add(JSON.stringify(message)));
  }
  if (kind === 'response lost') throw new TypeError('network error');
  const rejections = rejected.map(({ messageId }) => ({
    messageId,
    errors: [{ field: 'eventName', code: 'INVALID_VALUE', message: 'is longer than 256 characters' }],
  }));
  const accepted = messages.length - rejected.length;
  const body = { success: accepted > 0, accepted, rejected: rejected.length, rejections };
  return Response.json(body, { status: accepted > 0 ? 200 : 400 });
}
