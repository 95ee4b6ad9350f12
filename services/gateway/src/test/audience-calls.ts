import {
  type ConsentRecord,
  consentCodec,
  type ErasureRequestRecord,
  erasureRequestCodec,
  FRAME_BYTES,
} from '@playline/contracts';
import { KEY_HEADER, type TestGateway, type TestProducer } from './open-gateway.ts';

export const CONSENT = '/v1/audience/tracking-consent';
export const DATA = '/v1/audience/data';
export const SECRET_HEADER = 'x-service-api-key';

type Target = Pick<TestGateway, 'url' | 'key'>;

/** Creates a consent change as a client sends it. `fields` override the defaults. */
export function consentChange(fields: Record<string, unknown> = {}): Record<string, unknown> {
  return { anonymousId: 'visitor-1', status: 'full', source: 'cookie-banner', ...fields };
}

export function putConsent(
  { url, key }: Target,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(url + CONSENT, {
    method: 'PUT',
    headers: { 'content-type': 'application/json', [KEY_HEADER]: key, ...headers },
    body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
  });
}

/** @param query including the leading `?` */
export function getConsent(
  { url, key }: Target,
  query = '?anonymousId=visitor-1',
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(url + CONSENT + query, { headers: { [KEY_HEADER]: key, ...headers } });
}

/** @param query including the leading `?` */
export function erase(
  { url, secretKey }: Pick<TestGateway, 'url' | 'secretKey'>,
  query = '?anonymousId=visitor-1',
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(url + DATA + query, { method: 'DELETE', headers: { [SECRET_HEADER]: secretKey, ...headers } });
}

/** Decodes the consent records that were sent. */
export function sentConsents({ sent }: TestProducer): ConsentRecord[] {
  return sent
    .flatMap(({ records }) => records)
    .filter(({ topic }) => topic === 'test.audience.consents.v1')
    .map(({ value }) => consentCodec.decode(value.subarray(FRAME_BYTES)));
}

/** Decodes the erasure requests that were sent. */
export function sentErasures({ sent }: TestProducer): ErasureRequestRecord[] {
  return sent
    .flatMap(({ records }) => records)
    .filter(({ topic }) => topic === 'test.audience.erasures.v1')
    .map(({ value }) => erasureRequestCodec.decode(value.subarray(FRAME_BYTES)));
}
