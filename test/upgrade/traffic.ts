import { randomUUID } from 'node:crypto';

export interface Round {
  readonly tag: string;
  readonly messageIds: readonly string[];
}

export interface Caller {
  readonly url: string;
  readonly publishable: string;
  readonly secret: string;
}

const assertOk = async (what: string, statuses: readonly number[], response: Response) => {
  if (!statuses.includes(response.status)) throw new Error(`${what}: ${response.status} ${await response.text()}`);
  return response;
};

/**
 * Posts one request per record type: a batch with a link fact and an invalid message, a consent, an erasure request.
 * @throws Error on an unexpected status
 */
export async function postRound({ url, publishable, secret }: Caller, tag: string): Promise<Round> {
  const [track, identify] = [randomUUID(), randomUUID()];
  const common = { eventTimestamp: new Date().toISOString(), anonymousId: `${tag}-visitor` };
  const messages = [
    {
      ...common,
      type: 'track',
      messageId: track,
      eventName: 'level_started',
      surface: 'unity',
      properties: { level: 3 },
    },
    { ...common, type: 'identify', messageId: identify, userId: `${tag}-player`, identityType: 'steam' },
    { ...common, type: 'track', messageId: randomUUID(), eventName: '' },
  ];
  const json = { 'content-type': 'application/json', 'x-service-publishable-key': publishable };
  const body = JSON.stringify({ messages });
  await assertOk(
    'messages',
    [200],
    await fetch(`${url}/v1/audience/messages`, { method: 'POST', headers: json, body }),
  );
  const consent = JSON.stringify({ anonymousId: `${tag}-visitor`, status: 'full', source: 'banner' });
  const consentUrl = `${url}/v1/audience/tracking-consent`;
  await assertOk('consent', [204], await fetch(consentUrl, { method: 'PUT', headers: json, body: consent }));
  const erase = `${url}/v1/audience/data?anonymousId=${tag}-stranger`;
  await assertOk('erasure', [202], await fetch(erase, { method: 'DELETE', headers: { 'x-service-api-key': secret } }));
  return { tag, messageIds: [track, identify] };
}
