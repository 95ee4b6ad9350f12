import { EXAMPLE_TRACE_ID } from '@playline/api-docs';
import { smallMessage } from '@playline/testkit';
import { KEY_OF, type Situation } from '../../services/gateway/src/docs/examples/context.ts';
import { openGateway, type TestGateway } from '../../services/gateway/src/test/open-gateway.ts';

/** A request as some form of the documentation shows it, with a reader's keys not yet filled in. */
export interface ShownRequest {
  method: string;
  /** The whole address. */
  address: string;
  headers: Record<string, string>;
  body: string | null;
}

/** An answer, without what differs each time. */
export interface PlainAnswer {
  status: number;
  headers: Headers;
  body: unknown;
}

/** The base that the gateways of these tests write into their documentation. */
export const PUBLIC_URL = 'https://docs.test';

const SITUATIONS: readonly (string | undefined)[] = [undefined, 'full', 'broken'] satisfies (Situation | undefined)[];

/** A gateway that fares as an example says. */
export async function openGatewayIn(situation: string | undefined): Promise<TestGateway> {
  if (!SITUATIONS.includes(situation)) throw new Error(`no test knows the situation ${situation}`);
  const gateway = await openGateway(situation === 'full' ? { BYTES_IN_FLIGHT_MAX: 1, PUBLISH_DEADLINE_MS: 1 } : {});
  if (situation === 'broken') gateway.producer.mode = 'fail';
  if (situation !== 'full') return gateway;
  gateway.producer.mode = 'hold';
  void fillUp(gateway);
  while (gateway.producer.sent.length === 0) await new Promise(setImmediate);
  return gateway;
}

/** One batch that the brokers never acknowledge takes all the room, also after it was answered with a 500. */
async function fillUp({ post }: TestGateway): Promise<void> {
  await post({ messages: [smallMessage('page')] }).catch(() => {});
}

/** Sends a shown request to a gateway, with real keys in place of the placeholders. */
export async function send(gateway: TestGateway, request: ShownRequest): Promise<PlainAnswer> {
  const keys: Record<string, string> = { [KEY_OF.publishable]: gateway.key, [KEY_OF.secret]: gateway.secretKey };
  const headers = Object.entries(request.headers).map(([name, value]): [string, string] => [
    name,
    keys[value] ?? value,
  ]);
  const answer = await fetch(request.address.replace(PUBLIC_URL, gateway.url), {
    method: request.method,
    headers,
    body: request.body,
  });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, body: text === '' ? null : withoutTrace(JSON.parse(text)) };
}

/** A body as examples show it: the trace id is the example's. */
function withoutTrace(body: Record<string, unknown>): Record<string, unknown> {
  return 'trace_id' in body ? { ...body, trace_id: EXAMPLE_TRACE_ID } : body;
}
