import { EXAMPLE_TRACE_ID } from '@playline/api-docs';
import { buildSdk } from '@playline/audience-client/sdk';
import { smallMessage } from '@playline/testkit';
import { DOCS_KEYS, type Situation } from '../../services/gateway/src/docs/examples.ts';
import { createGatewayDocs } from '../../services/gateway/src/docs/source.ts';
import { openGateway, type TestGateway } from '../../services/gateway/src/test/open-gateway.ts';

/** A documented request, with placeholders instead of keys. */
export interface DocumentedRequest {
  method: string;
  address: string;
  headers: Record<string, string>;
  body: string | null;
}

export const PUBLIC_URL = 'https://docs.test';
export const SOURCE = createGatewayDocs({
  publicUrl: PUBLIC_URL,
  headerPrefix: 'x-service',
  nowMs: Date.now(),
  downloads: buildSdk(),
});

const SITUATIONS: readonly (string | undefined)[] = [undefined, 'full', 'broken'] satisfies (Situation | undefined)[];

export async function openGatewayIn(situation: string | undefined): Promise<TestGateway> {
  if (!SITUATIONS.includes(situation)) throw new Error(`unknown situation ${situation}`);
  const gateway = await openGateway(situation === 'full' ? { BYTES_IN_FLIGHT_MAX: 1, PUBLISH_DEADLINE_MS: 1 } : {});
  if (situation === 'broken') gateway.producer.mode = 'fail';
  if (situation !== 'full') return gateway;
  gateway.producer.mode = 'hold';
  // The brokers never acknowledge this batch, so it keeps the bytes-in-flight limit exhausted even after its 500.
  void gateway.post({ messages: [smallMessage('page')] }).catch(() => {});
  while (gateway.producer.sent.length === 0) await new Promise(setImmediate);
  return gateway;
}

/** Sends a documented request with real keys. @returns the response, with the trace id from the examples */
export async function send(gateway: TestGateway, { address, method, headers, body }: DocumentedRequest) {
  const keys: Record<string, string> = { [DOCS_KEYS.publishable]: gateway.key, [DOCS_KEYS.secret]: gateway.secretKey };
  const realHeaders = Object.entries(headers).map(([name, value]): [string, string] => [name, keys[value] ?? value]);
  const response = await fetch(address.replace(PUBLIC_URL, gateway.url), { method, headers: realHeaders, body });
  const text = await response.text();
  const parsed = text === '' ? null : (JSON.parse(text) as Record<string, unknown>);
  const shown = parsed !== null && 'trace_id' in parsed ? { ...parsed, trace_id: EXAMPLE_TRACE_ID } : parsed;
  return { status: response.status, headers: response.headers, body: shown };
}
