// Contract, "EventContext" and "Rules of a message".
import { afterAll, beforeAll, it } from 'vitest';
import { type Client, expectAccepted, expectRejected, track, withContext } from './client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from './gateway.ts';

let client: Client & ConformanceGateway;
beforeAll(async () => {
  client = await startGateway();
}, START_MAX_MS);
afterAll(() => client.close());

const LENGTHS: [string, number][] = [
  ['library', 256],
  ['libraryVersion', 256],
  ['userAgent', 512],
  ['locale', 256],
  ['timezone', 256],
  ['screen', 256],
  ['pageUrl', 2048],
  ['pagePath', 2048],
  ['pageReferrer', 2048],
  ['pageTitle', 256],
  ['browserLanguage', 256],
];

it('the context: is not required', async () => {
  expectAccepted(await client.send(track({ context: undefined })));
});

it('the context: when present, needs library and libraryVersion', async () => {
  const needed = ['MISSING_REQUIRED_FIELD context.library', 'MISSING_REQUIRED_FIELD context.libraryVersion'];
  expectRejected(await client.send(track({ context: {} })), ...needed);
  expectRejected(await client.send(withContext({ library: null, libraryVersion: ' ' })), ...needed);
});

it.each(LENGTHS)(
  'the context: %s of %i code points is accepted, one more is INVALID_VALUE with a dotted name',
  async (field, max) => {
    expectAccepted(await client.send(withContext({ [field]: 'é'.repeat(max) })));
    expectRejected(await client.send(withContext({ [field]: 'x'.repeat(max + 1) })), `INVALID_VALUE context.${field}`);
  },
);

it.each(LENGTHS)('the context: %s of another JSON type: INVALID_FORMAT', async (field) => {
  for (const value of [1, true, {}, []])
    expectRejected(await client.send(withContext({ [field]: value })), `INVALID_FORMAT context.${field}`);
});

it.each(LENGTHS.slice(2))(
  'the context: an empty string in the optional %s is accepted, and null is absent',
  async (field) => {
    expectAccepted(await client.send(withContext({ [field]: '' }), withContext({ [field]: null })), 2);
  },
);

it('the context: a lone surrogate is accepted', async () => {
  const body = JSON.stringify({ messages: [withContext({ pageTitle: 'LONE' })] }).replace('LONE', '\\udc00');
  expectAccepted(await client.post(body), 1);
});

it('the context: screenDensity is a number', async () => {
  expectAccepted(await client.send(withContext({ screenDensity: 2.625 }), withContext({ screenDensity: null })), 2);
  for (const value of ['2', true, {}])
    expectRejected(await client.send(withContext({ screenDensity: value })), 'INVALID_FORMAT context.screenDensity');
});

it('the context: unknown fields are ignored', async () => {
  expectAccepted(await client.send(withContext({ plugin: { name: 'x' } })));
});
