import { allExamples, CURSOR_PLACEHOLDERS, createDocuments, EXAMPLE_TRACE_ID, placeholderOf } from '@playline/api-docs';
import { findFaults } from '@playline/api-docs/test';
import { createParseActivity, createParseToken, toActivityRow, toTokenRow } from '@playline/chain';
import { ACTIVITY_TYPES } from '@playline/contracts';
import { toRequestedState } from '@playline/mints';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, it, onTestFinished } from 'vitest';
import { collectionRecord } from '../test/minting-world.ts';
import { CHAIN, OTHER_CHAIN, openChainApi, PARTITION, type TestChainApi } from '../test/open-chain-api.ts';
import { activityRow, addressOf, NOON_US, tokenRow } from '../test/rows.ts';
import { findExampleToken } from './example-token.ts';
import { EXAMPLE_CURSOR } from './examples.ts';
import { EXAMPLE_ASSET, EXAMPLE_COLLECTION, EXAMPLE_RESET, EXAMPLE_TIME, EXAMPLE_UNOWNED } from './minting-examples.ts';
import { createChainDocs } from './source.ts';

type Json = { [name: string]: Json };

const source = createChainDocs({
  publicUrl: 'https://docs.test',
  headerPrefix: 'x-service',
  chains: [CHAIN, OTHER_CHAIN],
});
const openapi = JSON.parse(createDocuments(source).get('/openapi.json')?.text ?? '{}') as Json;
const logged = { updatedAt: NOON_US, partition: PARTITION, offset: 0, loggedAtMs: NOON_US / 1000 };

/** Returns the result of an example in the format of an imported line. */
function toImportLine(name: string): unknown {
  const { result } = allExamples(source).find((one) => one.name === name)!.response.body as { result: unknown };
  const fields = (Array.isArray(result) ? result[0] : result) as object;
  return { ...fields, chain: CHAIN.name };
}

function requireRecord<T>(parsed: { ok: true; record: T } | { ok: false; errors: unknown }): T {
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return parsed.record;
}

async function openInSituation(situation: string | undefined): Promise<TestChainApi> {
  const storeDown = { store: { readPage: () => Promise.reject(new Error('unavailable')) } };
  const api = await openChainApi({
    ...(situation === 'store-down' ? storeDown : {}),
    ...(situation === 'rate-limited' ? { RATE_LIMIT_CALLS: 1 } : {}),
  });
  await prepareMints(api, situation);
  const context = { chain: CHAIN.name, traceId: 'ab'.repeat(16) };
  await api.putTokens(toTokenRow(requireRecord(createParseToken(context)(toImportLine('token'))), logged));
  await api.put(toActivityRow(requireRecord(createParseActivity(context)(toImportLine('history'))), logged));
  if (situation === 'rate-limited') await api.get(`/${CHAIN.name}/activity-history`);
  return api;
}

/** Links the collections in the examples and requests minting of the example asset. */
async function prepareMints({ minting, call }: TestChainApi, situation: string | undefined): Promise<void> {
  if (situation === 'rate-limited') return;
  const otherOwner = { projectId: 'other', environmentId: 'other-production' };
  minting.collections.push(collectionRecord(EXAMPLE_COLLECTION), collectionRecord(EXAMPLE_UNOWNED, otherOwner));
  const mint = { body: { assets: [EXAMPLE_ASSET] } };
  expect((await call(`/${EXAMPLE_COLLECTION}/nfts/mint-requests`, mint)).status).toBe(202);
  minting.reader.put(...minting.requests.map(toRequestedState));
  const policy = { kind: 'mint', perSecond: 200 / 60, burst: 2000 } as const;
  if (situation === 'quota-exceeded') await minting.mints.quotas.take('demo', policy, 1999);
  if (situation === 'kafka-down') minting.broker = 'down';
}

/** Replaces the trace id, cursors and times in a body with the values in the examples. */
function toExampleBody(text: string): unknown {
  if (text === '') return null;
  const times = /"(created_at|updated_at|imx_\w+_reset)":"[^"]+"/g;
  const fixed = text.replace(times, (_, name: string) => {
    return `"${name}":"${name.endsWith('_reset') ? EXAMPLE_RESET : EXAMPLE_TIME}"`;
  });
  const body = JSON.parse(fixed) as Record<string, unknown>;
  if ('trace_id' in body) return { ...body, trace_id: EXAMPLE_TRACE_ID };
  return 'page' in body ? { ...body, page: { previous_cursor: EXAMPLE_CURSOR, next_cursor: EXAMPLE_CURSOR } } : body;
}

it('the first example is a token that the service serves, as soon as there is one', async () => {
  const api = await openChainApi();
  const row = tokenRow({ chain: OTHER_CHAIN.name, contractAddress: addressOf(77) });
  let tokens: (typeof row)[] = [];
  const found = findExampleToken({ findToken: async () => tokens.at(0) ?? null }, [CHAIN, OTHER_CHAIN], 1);
  onTestFinished(found.close);
  expect(found.current()).toBeNull();
  tokens = [row];
  await expect.poll(found.current).toEqual(row);
  await api.putTokens(row);
  const settings = { publicUrl: 'https://docs.test', headerPrefix: 'x-service', chains: [CHAIN, OTHER_CHAIN] };
  const { request, response } = allExamples(createChainDocs({ ...settings, token: found.current() }))[0]!;
  const real = await fetch(api.url + request.target);
  expect([real.status, await real.json()]).toEqual([response.status, response.body]);
});

it('the chain API documentation has no contradictions', () => {
  expect(findFaults(source)).toEqual([]);
});

it('the chain API documentation lists exactly the operations that the service has', async () => {
  const { routes } = await openChainApi();
  const served = routes.filter(({ path }) => path.startsWith('/v1/'));
  const described = source.operations.map(({ method, path }) => ({ method, path: path.replace(/\{(\w+)\}/g, ':$1') }));
  expect(served.map(({ method, path }) => ({ method, path }))).toEqual(described);
});

it('the chain API documentation has a page for every error code, and error responses link to the page', async () => {
  const api = await openChainApi();
  const codes = new Set(source.operations.flatMap(({ responses }) => responses.flatMap(({ codes }) => codes)));
  expect([...codes].sort()).toEqual(Object.keys(source.errors).sort());
  for (const code of codes) {
    const page = await fetch(`${api.url}/docs/errors/${code}`);
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(await page.text()).toContain(`<h1>${code}</h1>`);
  }
  const { link } = (await (await api.get('/none')).json()) as { link: string };
  expect((await fetch(link.replace('https://docs.test', api.url))).status).toBe(200);
});

it('the chain API documentation has an example for every status that a caller can cause', () => {
  const statuses = new Set(allExamples(source).map(({ response }) => response.status));
  expect([...statuses].sort()).toEqual([200, 202, 304, 400, 401, 403, 404, 409, 429, 500]);
});

/** Returns the cursor after the last entry of the list at `target`. */
async function nextCursorOf(api: TestChainApi, target: string): Promise<string> {
  if (!target.includes('mint-requests')) return (await api.history()).page.next_cursor;
  const list = await api.call(`/${EXAMPLE_COLLECTION}/nfts/mint-requests`);
  return ((await list.json()) as { page: { next_cursor: string } }).page.next_cursor;
}

it.each(allExamples(source))(
  'the chain API returns exactly the documented response for the example $name',
  async ({ request, response, situation }) => {
    const api = await openInSituation(situation);
    const cursor = situation === undefined ? await nextCursorOf(api, request.target) : '';
    const target = request.target.replace(CURSOR_PLACEHOLDERS.next, cursor);
    const keys = Object.entries(request.headers).map(([name, value]) => {
      return [name, value.replace(placeholderOf('secret'), api.minting.secretKey)] as const;
    });
    const { method, body: sent } = request;
    const real = await fetch(api.url + target, { method, headers: Object.fromEntries(keys), body: sent });
    expect({ status: real.status, body: toExampleBody(await real.text()) }).toEqual({
      status: response.status,
      body: response.body,
    });
    for (const name of Object.keys(response.headers)) expect(real.headers.get(name), name).toMatch(/\S/);
    if (real.status === 429) expect(real.headers.get('retry-after')).toBe(response.headers['retry-after']);
    const { operations } = source;
    const spec = operations
      .find(({ examples }) => examples.some((one) => one.request === request))
      ?.responses.find(({ status }) => status === real.status);
    for (const { name, schema } of spec?.headers ?? [])
      expect(real.headers.get(name) ?? 'absent', name).toMatch(new RegExp(schema.pattern ?? '^[1-9][0-9]*$'));
  },
);

const ajv = new Ajv2020({
  strict: true,
  strictTypes: false,
  allErrors: true,
  formats: { uuid: /^[0-9a-f-]{36}$/, 'date-time': /Z$/ },
});
const toInternalRefs = (schema: unknown) =>
  JSON.parse(JSON.stringify(schema).replaceAll('"#/components/schemas/', '"urn:schema:'));
for (const [name, schema] of Object.entries(openapi.components?.schemas ?? {}))
  ajv.addSchema(toInternalRefs(schema), `urn:schema:${name}`);
const validate = (name: string, value: unknown) => {
  const check = ajv.compile({ $ref: `urn:schema:${name}` });
  return check(value) ? '' : ajv.errorsText(check.errors);
};

it('the schemas accept activities of every type and tokens, with and without nullable fields', async () => {
  const api = await openChainApi();
  await api.put(...ACTIVITY_TYPES.map((type, after) => activityRow({ type, after })));
  await api.put(activityRow({ blockchainMetadata: null, after: 10 }));
  const page = await api.history();
  expect(page.result).toHaveLength(ACTIVITY_TYPES.length + 1);
  expect(validate('ActivityHistory', page)).toBe('');
  const emptyFields = { rootContractAddress: null, symbol: null, decimals: null, imageUrl: null, name: null };
  await api.putTokens(
    tokenRow(),
    tokenRow({ contractAddress: addressOf(5), ...emptyFields, rootChainId: null, bridgeUsed: null }),
  );
  for (const address of [addressOf(2), addressOf(5)])
    expect(validate('TokenResponse', await (await api.get(`/${CHAIN.name}/tokens/${address}`)).json())).toBe('');
});

it('the schemas reject a page without a cursor and an activity of unknown type', async () => {
  const api = await openChainApi();
  await api.put(activityRow());
  const page = await api.history();
  expect(validate('ActivityHistory', { ...page, page: { ...page.page, next_cursor: null } })).not.toBe('');
  expect(validate('ActivityHistory', { ...page, result: [{ ...page.result[0], type: 'gift' }] })).not.toBe('');
});
