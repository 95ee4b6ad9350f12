import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openTraceReceiver, until } from '@playline/testkit';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { openBrowser } from '../../packages/audience-client/src/test/open-browser.ts';
import { countStored, type JourneyStack, query, startJourneyStack, trackMessage } from './stack.ts';

/** A cluster starts more than thirty processes. */
const START_MS = 400_000;
let stack: JourneyStack;
let traces: Awaited<ReturnType<typeof openTraceReceiver>>;
beforeAll(async () => {
  traces = await openTraceReceiver();
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', traces.endpoint);
  vi.stubEnv('OTEL_TRACES_SAMPLER_ARG', '1');
  stack = await startJourneyStack({ chain: true });
}, START_MS);
afterAll(async () => {
  await stack?.close();
  await traces.close();
}, 60_000);

const player = randomUUID();
const account = randomUUID();
const traceId = randomUUID().replaceAll('-', '');
const sent = trackMessage({
  anonymousId: player,
  deviceId: 'device-1',
  sessionId: 'session-1',
  surface: 'unity',
  consentLevel: 'full',
  test: true,
  eventTimestamp: `${new Date().toISOString().slice(0, 19)}.1239999+00:00`,
  context: {
    library: 'playline-unity',
    libraryVersion: '2.0.1',
    screenDensity: 1.5,
    pageTitle: 'Spiel “Ü” 🎮',
    locale: '',
  },
  properties: { level: 3, items: ['a', { b: null }], text: 'quote " and \\ and \u0000' },
});
const user = { userId: account, identityType: 'passport' };
const identify = trackMessage({ type: 'identify', anonymousId: player, ...user, eventName: undefined });
const bystander = trackMessage({ anonymousId: randomUUID() });
const all = [sent, identify, bystander].map(({ messageId }) => messageId);
const listed = all.map((id) => `'${id}'`).join();

describe('a person in a complete stack', () => {
  it('ClickHouse contains one row per message with all fields, even if the batch is sent three times', async () => {
    for (let round = 0; round < 3; round++)
      expect(
        await stack.post([sent, identify, bystander], { traceparent: `00-${traceId}-00f067aa0ba902b7-01` }),
      ).toMatchObject({ status: 200, body: { accepted: 3 } });
    expect((await countStored(stack, all)).exact).toBe(3);
    const [row] = await stack.query<Record<string, unknown>>(
      `SELECT * EXCEPT (identity_key, anonymous_key, user_key, from_key, to_key),
         toString(toUnixTimestamp64Milli(event_time)) AS event_ms
       FROM events_exact WHERE message_id = '${sent.messageId}'`,
    );
    expect(row).toMatchObject({
      environment_id: 'demo-production',
      type: 'track',
      event_name: 'level_started',
      anonymous_id: player,
      user_id: '',
      device_id: 'device-1',
      session_id: 'session-1',
      surface: 'unity',
      consent_level: 'full',
      test: true,
      library: 'playline-unity',
      library_version: '2.0.1',
      screen_density: 1.5,
      page_title: 'Spiel “Ü” 🎮',
      locale: '',
      traits: '',
      trace_id: traceId,
      event_ms: String(Date.parse(`${String(sent.eventTimestamp).slice(0, 19)}.123Z`)),
    });
    expect(JSON.parse(String(row?.properties))).toEqual(sent.properties);
  });

  it("events before and after identify belong to one person, but a bystander's events do not", async () => {
    const persons = await until('identify joins the two identities', async () => {
      const rows = await stack.query<{ id: string; person: string }>(
        `SELECT message_id AS id, hex(person_key) AS person FROM events_identified WHERE message_id IN (${listed})`,
      );
      const byId = new Map(rows.map(({ id, person }) => [id, person]));
      return byId.get(sent.messageId) === byId.get(identify.messageId) ? byId : null;
    });
    expect(persons.get(bystander.messageId)).not.toBe(persons.get(sent.messageId));
  });

  it("an erasure deletes the person from every table and issues a receipt, and the bystander's event remains", async () => {
    const url = `${stack.file().gateway}/v1/audience/data?userId=${account}`;
    const headers = { 'x-service-api-key': stack.keys.production.secret };
    const response = await fetch(url, { method: 'DELETE', headers });
    expect(response.status).toBe(202);
    const id = response.headers.get('x-erasure-id');
    const receipt = `SELECT 1 FROM erasure_receipts FINAL WHERE erasure_id = '${id}'`;
    await until('the receipt is stored', async () => (await stack.query(receipt)).length > 0);
    const remaining = await stack.query(
      `SELECT DISTINCT message_id FROM ${stack.events} WHERE message_id IN (${listed})`,
    );
    expect(remaining).toEqual([{ message_id: bystander.messageId }]);
  });
});

it('a game receives the token that it requested, and the mint is in the activity history', async () => {
  const { chainApi, chain } = stack.file();
  const contract = chain?.contracts.erc721;
  const mints = `${chainApi}/v1/chains/demo-chain/collections/${contract}/nfts/mint-requests`;
  const headers = { 'x-service-api-key': stack.keys.development.secret, 'content-type': 'application/json' };
  const asset = { reference_id: `journey-${randomUUID()}`, owner_address: `0x${'12'.repeat(20)}`, token_id: '77' };
  const response = await fetch(mints, { method: 'POST', headers, body: JSON.stringify({ assets: [asset] }) });
  expect(response.status).toBe(202);
  const request = await until('the mint succeeds', async () => {
    const page = await (await fetch(`${mints}/${asset.reference_id}`, { headers })).json();
    const [found] = (page as { result: { status: string; activity_id: string | null }[] }).result;
    if (found?.status !== 'succeeded') throw new Error(JSON.stringify(found));
    return found;
  });
  const history = `${chainApi}/v1/chains/demo-chain/activity-history?contract_address=${contract}&page_size=200`;
  const activity = await until('the history contains the activity', async () => {
    const page = (await (await fetch(history)).json()) as { result: { id: string }[] };
    return page.result.find(({ id }) => id === request.activity_id) ?? null;
  });
  expect(activity).toMatchObject({ type: 'mint', details: { to: asset.owner_address, asset: { token_id: '77' } } });
});

describe('the pages of a complete stack in a browser', () => {
  let browser: Browser;
  let page: Page;
  const faults: string[] = [];
  beforeAll(async () => {
    browser = await openBrowser();
    page = await browser.newPage();
    page.on('pageerror', (error) => faults.push(error.message));
    page.on('console', (line) => line.type() === 'error' && faults.push(line.text()));
  });
  afterAll(() => browser?.close());
  const heading = () => page.getByRole('heading', { level: 1 }).textContent();

  it('the documentation pages of the gateway and the chain API load without errors in the console', async () => {
    for (const url of [stack.file().gateway, stack.file().chainApi]) {
      expect((await page.goto(`${url}/docs`))?.status()).toBe(200);
      expect(await heading()).not.toBe('');
    }
    expect(faults).toEqual([]);
  });

  it("the portal's first link creates an administrator who sees the demo project", async () => {
    const { link } = JSON.parse(await stack.operate('accounts', 'link', '--json'));
    await page.goto(link);
    await page.getByLabel('Login').fill('ada@example.com');
    await page.getByLabel('Your name').fill('Ada');
    const passwords = page.locator('input[type="password"]');
    for (let index = 0; index < (await passwords.count()); index++)
      await passwords.nth(index).fill('correct horse battery');
    await page.getByRole('button', { name: /password/ }).click();
    expect(await heading()).toBe('Projects');
    expect(await page.getByRole('main').textContent()).toContain('demo');
    expect(faults).toEqual([]);
  });
});

describe('the protected data in a complete stack', () => {
  it('analysts can read the views but cannot write', async () => {
    expect(await query(stack.analyst, 'SELECT count() FROM analysis_events')).toHaveLength(1);
    for (const statement of ['DROP TABLE events', "INSERT INTO events (type) VALUES ('x')"])
      await expect(query(stack.analyst, statement)).rejects.toThrow(/ACCESS_DENIED|READONLY/);
  });

  it('traces of a message, an erasure, a mint and chain activities continue from the request to the stored row', async () => {
    const isContinued = (first: string, ...later: string[]) => {
      const traceIdsOf = (part: string) =>
        traces.spans.flatMap(({ service, name, traceId }) => (`${service} ${name}`.startsWith(part) ? [traceId] : []));
      const continued = later.map((part) => new Set(traceIdsOf(part)));
      return traceIdsOf(first).some((traceId) => continued.every((ids) => ids.has(traceId)));
    };
    for (const [first, ...later] of [
      ['gateway POST /v1/audience/messages', 'event-writer store audience.messages'],
      ['gateway DELETE /v1/audience/data', 'eraser erase'],
      ['chain-api POST', 'minter mint', 'activity-writer store chain.mint-state'],
      ['chain-indexer publish activities', 'activity-writer store chain.activities'],
    ] as const)
      await until(`a trace from ${first} to ${later.at(-1)}`, () => isContinued(first, ...later) || null, 30_000);
  });

  it('a secret key does not appear in logs, metrics or traces, even if every part of a request contains the key', async () => {
    const secret = stack.keys.production.secret;
    await stack.post([trackMessage()], { 'x-service-publishable-key': secret });
    await stack.post([trackMessage()], { 'x-service-api-key': secret, traceparent: secret });
    await stack.post([{ messageId: secret, type: secret, eventTimestamp: secret }], { 'content-encoding': secret });
    await fetch(`${stack.file().gateway}/${secret}?key=${secret}`);
    const logs = join(stack.folder, 'logs');
    for (const name of readdirSync(logs)) expect(readFileSync(join(logs, name), 'utf8'), name).not.toContain(secret);
    for (const [name, url] of Object.entries(stack.file().admin ?? {}))
      expect(await (await fetch(`${url}/metrics`)).text(), name).not.toContain(secret);
    const exported = () => traces.spans.filter(({ name }) => name === 'GET unmatched').length > 0 || null;
    await until('the last request is exported', exported, 30_000);
    expect(traces.bodies.join('\n')).not.toContain(secret);
    for (const id of [player, account]) expect(traces.bodies.join('\n')).not.toContain(id);
  });
});
