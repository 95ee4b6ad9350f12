import { EXAMPLE_TRACE_ID } from '@playline/api-docs';
import { smallMessage } from '@playline/testkit';
import { KEY_OF, type Situation } from '../../services/gateway/src/docs/examples.ts';
import { createGatewayDocs } from '../../services/gateway/src/docs/source.ts';
import { openGateway, type TestGateway } from '../../services/gateway/src/test/open-gateway.ts';

/** A request as the documentation shows it, without a reader's keys. */
export interface ShownRequest {
  method: string;
  address: string;
  headers: Record<string, string>;
  body: string | null;
}

export const PUBLIC_URL = 'https://docs.test';
export const SOURCE = createGatewayDocs({ publicUrl: PUBLIC_URL, headerPrefix: 'x-service', nowMs: Date.now() });

const SITUATIONS: readonly (string | undefined)[] = [undefined, 'full', 'broken'] satisfies (Situation | undefined)[];

export async function openGatewayIn(situation: string | undefined): Promise<TestGateway> {
  if (!SITUATIONS.includes(situation)) throw new Error(`no test knows the situation ${situation}`);
  const gateway = await openGateway(situation === 'full' ? { BYTES_IN_FLIGHT_MAX: 1, PUBLISH_DEADLINE_MS: 1 } : {});
  if (situation === 'broken') gateway.producer.mode = 'fail';
  if (situation !== 'full') return gateway;
  gateway.producer.mode = 'hold';
  // Brokers never acknowledge this batch. It uses up the limit of bytes in flight, also after its 500.
  void gateway.post({ messages: [smallMessage('page')] }).catch(() => {});
  while (gateway.producer.sent.length === 0) await new Promise(setImmediate);
  return gateway;
}

/** Sends a shown request with real keys. @returns the answer, with the trace id of the examples */
export async function send(gateway: TestGateway, { address, method, headers, body }: ShownRequest) {
  const keys: Record<string, string> = { [KEY_OF.publishable]: gateway.key, [KEY_OF.secret]: gateway.secretKey };
  const sent = Object.entries(headers).map(([name, value]): [string, string] => [name, keys[value] ?? value]);
  const answer = await fetch(address.replace(PUBLIC_URL, gateway.url), { method, headers: sent, body });
  const text = await answer.text();
  const parsed = text === '' ? null : (JSON.parse(text) as Record<string, unknown>);
  const answered = parsed !== null && 'trace_id' in parsed ? { ...parsed, trace_id: EXAMPLE_TRACE_ID } : parsed;
  return { status: answer.status, headers: answer.headers, body: answered };
}
