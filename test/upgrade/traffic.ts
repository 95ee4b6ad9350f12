import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';

const PAUSE_MS = 100;

export interface Keys {
  readonly publishable: string;
  readonly secret: string;
}

/** Acknowledged requests about one person, who has two messages and a consent. */
export interface Round {
  readonly tag: string;
  readonly messageIds: readonly string[];
  /** URL of the gateway that acknowledged the messages. */
  readonly gateway: string;
}

/** A client that sends rounds until it is closed. It resends requests that fail, as the client library does. */
export interface Load {
  /** URLs of the gateways that receive requests, as behind a load balancer. */
  readonly gateways: Set<string>;
  readonly rounds: readonly Round[];
  /** Ids of messages that were sent more than once, because a request failed although its records may be on the log. */
  readonly resent: ReadonlySet<string>;
  /** Unexpected responses after which the client library does not resend: all except 429 and 5xx. */
  readonly refusals: readonly string[];
  /** Sends a round in addition to the continuous rounds. */
  post(tag: string): Promise<Round>;
  /** Requests the erasure of a round's person. @returns the erasure id */
  requestErasure(round: Round): Promise<string>;
  close(): Promise<void>;
}

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly key: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Expected status. */
  readonly status: number;
  readonly messageIds?: readonly string[];
}

export function openLoad(keys: Keys, gateway: string): Load {
  const gateways = new Set([gateway]);
  const rounds: Round[] = [];
  const resent = new Set<string>();
  const refusals: string[] = [];
  const publishable = { 'x-service-publishable-key': keys.publishable };
  let isClosed = false;
  let requests = 0;

  const send = async ({ method, path, key, body, status, messageIds = [] }: Sent) => {
    const headers = { ...key, 'content-type': 'application/json' };
    for (;;) {
      const url = [...gateways][requests++ % gateways.size]!;
      const request = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
      const response = await fetch(url + path, request).catch(() => null);
      if (response?.status === status) return { url, response };
      const text = await response?.text();
      const isTemporary = response === null || response.status === 429 || response.status >= 500;
      if (!isTemporary) refusals.push(`${method} ${path}: ${response.status} ${text}`);
      if (isClosed)
        throw new Error(`${method} ${path}: no gateway acknowledged the request before the load was closed`);
      for (const id of messageIds) resent.add(id);
      await delay(PAUSE_MS);
    }
  };

  const post = async (tag: string): Promise<Round> => {
    const { messages, messageIds } = createMessages(tag);
    const batch = { method: 'POST', path: '/v1/audience/messages', body: { messages }, status: 200 };
    const { url } = await send({ ...batch, key: publishable, messageIds });
    const consent = { anonymousId: `${tag}-visitor`, status: 'full', source: 'banner' };
    const path = '/v1/audience/tracking-consent';
    await send({ method: 'PUT', path, key: publishable, body: consent, status: 204 });
    const round = { tag, messageIds, gateway: url };
    rounds.push(round);
    return round;
  };

  const run = async () => {
    for (let count = 0; !isClosed; count++) {
      await post(`player-${count}`);
      await delay(PAUSE_MS);
    }
  };
  const running = run();
  // An error is thrown by `close`.
  running.catch(() => {});
  return {
    gateways,
    rounds,
    resent,
    refusals,
    post,
    requestErasure: async ({ tag }) => {
      const path = `/v1/audience/data?anonymousId=${tag}-visitor`;
      const { response } = await send({
        method: 'DELETE',
        path,
        key: { 'x-service-api-key': keys.secret },
        status: 202,
      });
      return response.headers.get('x-erasure-id')!;
    },
    close: async () => {
      isClosed = true;
      await running;
    },
  };
}

/** Creates a batch with a link fact and an invalid message. `messageIds` contains the ids of the valid messages. */
function createMessages(tag: string): { messages: object[]; messageIds: string[] } {
  const [track, identify] = [randomUUID(), randomUUID()];
  const common = { eventTimestamp: new Date().toISOString(), anonymousId: `${tag}-visitor` };
  const level = { eventName: 'level_started', surface: 'unity', properties: { level: 3 } };
  const messages = [
    { ...common, type: 'track', messageId: track, ...level },
    { ...common, type: 'identify', messageId: identify, userId: `${tag}-id`, identityType: 'steam' },
    { ...common, type: 'track', messageId: randomUUID(), eventName: '' },
  ];
  return { messages, messageIds: [track, identify] };
}
