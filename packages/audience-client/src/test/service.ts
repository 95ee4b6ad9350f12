import { gunzipSync } from 'node:zlib';
import type { Fetch, Message } from '../index.ts';

/** What the service does with one request. */
export type Reply =
  /** Takes everything. */
  | 'taken'
  /** Rejects every other message, beginning with the first. */
  | 'some rejected'
  /** Rejects all: 400 with a MessagesResponse. */
  | 'all rejected'
  /** 400 with the error envelope. */
  | 'malformed'
  | 'unauthorised'
  /** 429, Retry-After: 30. */
  | 'too many'
  | 'fault'
  /** Never answers. */
  | 'hangs'
  | 'unreachable'
  /** Stores everything, and the answer is lost on its way back. */
  | 'answer lost'
  /** A page of another server, with status 200, as captive portals send it. */
  | 'portal';

export const RETRY_AFTER_S = 30;

export interface SeenRequest {
  url: string;
  headers: Record<string, string>;
  messages: Message[];
  /** Bytes as they would travel. */
  bytes: number;
  keepalive: boolean;
  credentials: string;
  atMs: number;
}

/** The service's side of the contract, in memory, behind the client's own port for `fetch`. */
export interface Service {
  fetch: Fetch;
  requests: SeenRequest[];
  /** Used up in this order; after that every request gets `otherwise`. */
  replies: Reply[];
  defaultReply: Reply;
  /** Each stored id, with every text that was sent under it. */
  stored: Map<string, Set<string>>;
  /** Requests that were started and have no answer yet. */
  inFlight: number;
  inFlightMax: number;
}

export function createService(...replies: Reply[]): Service {
  const service: Service = {
    replies,
    defaultReply: 'taken' as Reply,
    requests: [],
    stored: new Map(),
    inFlight: 0,
    inFlightMax: 0,
    fetch: async (url, init) => {
      service.inFlight += 1;
      service.inFlightMax = Math.max(service.inFlightMax, service.inFlight);
      try {
        const request = toSeen(url, init);
        service.requests.push(request);
        return await reply(service, request, init.signal ?? new AbortController().signal);
      } finally {
        service.inFlight -= 1;
      }
    },
  };
  return service;
}

function toSeen(url: string, init: RequestInit): SeenRequest {
  const headers = Object.fromEntries(new Headers(init.headers));
  const body = typeof init.body === 'string' ? Buffer.from(init.body) : Buffer.from(init.body as ArrayBuffer);
  const text = headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
  const { messages } = JSON.parse(text.toString());
  const { keepalive = false, credentials = '' } = init;
  return { url, headers, messages, bytes: body.length, keepalive, credentials, atMs: Date.now() };
}

async function reply(service: Service, { messages }: SeenRequest, signal: AbortSignal): Promise<Response> {
  const kind = service.replies.shift() ?? service.defaultReply;
  signal.throwIfAborted();
  if (kind === 'hangs')
    return new Promise((_, fail) => signal.addEventListener('abort', () => fail(signal.reason), { once: true }));
  if (kind === 'unreachable') throw new TypeError('Failed to fetch');
  if (kind === 'portal') return new Response('<h1>Please pay for your coffee</h1>');
  if (kind === 'fault') return Response.json({ code: 'INTERNAL_SERVER_ERROR' }, { status: 500 });
  if (kind === 'too many') return Response.json({}, { status: 429, headers: { 'retry-after': String(RETRY_AFTER_S) } });
  if (kind === 'malformed')
    return Response.json({ code: 'VALIDATION_ERROR', message: 'The batch is empty.' }, { status: 400 });
  if (kind === 'unauthorised')
    return Response.json({ code: 'UNAUTHORISED_REQUEST', message: 'No such key.' }, { status: 401 });
  const rejected = messages.filter((_, at) => kind === 'all rejected' || (kind === 'some rejected' && at % 2 === 0));
  for (const message of messages.filter((one) => !rejected.includes(one))) {
    const texts = service.stored.get(message.messageId) ?? new Set();
    service.stored.set(message.messageId, texts.add(JSON.stringify(message)));
  }
  if (kind === 'answer lost') throw new TypeError('network error');
  const rejections = rejected.map(({ messageId }) => ({
    messageId,
    errors: [{ field: 'eventName', code: 'INVALID_VALUE', message: 'is longer than 256 characters' }],
  }));
  const accepted = messages.length - rejected.length;
  const answer = { success: accepted > 0, accepted, rejected: rejected.length, rejections };
  return Response.json(answer, { status: accepted > 0 ? 200 : 400 });
}
