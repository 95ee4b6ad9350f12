import { EXAMPLE_TRACE_ID } from '@playline/api-docs';
import { smallMessage } from '@playline/testkit';
import { KEY_OF, type Situation } from '../../services/gateway/src/docs/examples/context.ts';
import { openGateway, type TestGateway } from '../../services/gateway/src/test/open-gateway.ts';

/** A request as some form of the documentation shows it, without a reader's keys. */
export interface ShownRequest {
  method: string;
  /** The whole address. */
  address: string;
  headers: Record<string, string>;
  body: string | null;
}

/** An answer without the parts that differ each time. */
export interface PlainAnswer {
  status: number;
  headers: Headers;
  body: unknown;
}

/** The base address in the documentation of these gateways. */
export const PUBLIC_URL = 'https://docs.test';

const SITUATIONS: readonly (string | undefined)[] = [undefined, 'full', 'broken'] satisfies (Situation | undefined)[];

/** Opens a gateway in the situation of an example. */
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

/**
 * Uses up the limit of bytes in flight with one batch that the brokers never acknowledge. It counts even after its 500.
 */
async function fillUp({ post }: TestGateway): Promise<void> {
  await post({ messages: [smallMessage('page')] }).catch(() => {});
}

/** Sends a shown request to a gateway, with real keys instead of the placeholders. */
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

/** Replaces the trace id by that of the examples. */
function withoutTrace(body: Record<string, unknown>): Record<string, unknown> {
  return 'trace_id' in body ? { ...body, trace_id: EXAMPLE_TRACE_ID } : body;
}
