import { PublicError } from '@playline/errors';
import { ClickHouseFault } from '@playline/stores';
import { expect, it } from 'vitest';
import type { MessageDetail, MessageLine } from '../../reads/index.ts';
import { createMemoryReads } from '../../test/memory-reads.ts';
import { createMessageLine } from '../../test/message-line.ts';
import { keyOf, usePortal } from '../../test/open-portal.ts';

const ID = createMessageLine().messageId;
const OTHER_ID = '0b1f7a52-6c3e-4d8a-9f10-2e5c7d9a4b06';
const messages: Record<string, MessageLine[]> = {};
const details: Record<string, Partial<MessageDetail>> = {};
/** Environments whose searches exceed the read limits. */
const tooLarge = new Set<string>();
const memory = createMemoryReads({ messages, details });
const refuse = () => {
  const cause = new ClickHouseFault(500, '158', 'too many rows');
  throw new PublicError('VALIDATION_ERROR', { message: 'The search is too large.', cause });
};
const portal = usePortal({
  reads: {
    ...memory,
    messages: async (each) => (tooLarge.has(each.environmentId) ? refuse() : memory.messages(each)),
    messageCounts: async (each) =>
      each.name === 'popular' ? [{ stepMs: each.sinceMs, messages: 1_001 }] : memory.messageCounts(each),
  },
});

async function openProject(role: 'developer' | 'analyst' = 'developer') {
  const project = await portal.addProject('Sky');
  const environmentId = `${project.id}-production`;
  const path = `/projects/${project.id}/environments/production/explore`;
  return { project, environmentId, path, browser: await portal.signIn({ project, role }) };
}

const toLine = (traceId: string, overrides: Partial<MessageLine> = {}) =>
  createMessageLine({ messageId: `${traceId}-message`, traceId, ...overrides });

const findShown = (text: string) =>
  ['plain', 'paged', 'on-unity', 'tested'].filter((name) => text.includes(`${name}-message`));

it.each([
  ['', ['plain', 'paged', 'on-unity']],
  ['type=track', ['plain', 'on-unity']],
  ['type=page', ['paged']],
  ['surface=unity', ['on-unity']],
  ['traffic=test', ['tested']],
  ['type=track&surface=web', ['plain']],
  ['type=page&event=jump', []],
] as const)('the explore page with %j shows %j in the list and in the export', async (query, expected) => {
  const { environmentId, path, browser } = await openProject();
  messages[environmentId] = [
    toLine('plain'),
    toLine('paged', { type: 'page', name: '' }),
    toLine('on-unity', { surface: 'unity' }),
    toLine('tested', { isTest: true }),
  ];
  expect(findShown((await browser.get(`${path}?${query}`)).text)).toEqual(expected);
  expect(findShown((await browser.get(`${path}?${query}&as=csv`)).text)).toEqual(expected);
});

it('the explore page continues after a search that timed out between two messages', async () => {
  const { environmentId, path, browser } = await openProject();
  const nowMs = Date.now();
  messages[environmentId] = [toLine('plain', { happenedMs: nowMs }), toLine('paged', { happenedMs: nowMs - 1 })];
  const shown = async (query: string) => findShown((await browser.get(`${path}?event=jump&${query}`)).text);
  expect(await shown('')).toEqual(['plain', 'paged']);
  expect(await shown(`after=${nowMs}.`)).toEqual(['paged']);
});

it('the player filter keeps the other filters, and no address contains the id', async () => {
  const { environmentId, path, browser } = await openProject();
  const identityId = keyOf(environmentId, 'email', 'ada@example.org').toString('hex');
  messages[environmentId] = [
    toLine('plain', { identityId }),
    toLine('paged', { identityId, isTest: true }),
    toLine('on-unity'),
  ];
  const response = await browser.submit(`${path}?type=track`, 'person', { person: 'ada@example.org' });
  const location = response.headers.get('location') ?? '';
  expect([response.status, location.includes('example'), location.includes('type=track')]).toEqual([303, false, true]);
  const { text } = await browser.get(location);
  expect([findShown(text), text.includes('One player')]).toEqual([['plain'], true]);
  expect(text).toContain('FROM events_exact');
  expect(findShown((await browser.get(`${location}&as=csv`)).text)).toEqual(['plain']);
});

it('the chart covers at least the range, has one point per step, and its table shows the same counts', async () => {
  const { environmentId, path, browser } = await openProject();
  messages[environmentId] = [toLine('plain'), toLine('paged')];
  const { text } = await browser.get(`${path}?range=1h`);
  const [times = [], counts = []] = JSON.parse(/data-points="([^"]*)"/.exec(text)![1]!) as number[][];
  expect([times.length, counts.reduce((sum, each) => sum + each, 0)]).toEqual([61, 2]);
  expect(text).toContain('<h2>2 messages');
  expect((await browser.get(`${path}?event=popular`)).text).toContain('<h2>About 1,001 messages');
  expect(text).toContain('View as table');
});

it('the chart of a wide range is not part of the page until it is requested', async () => {
  const { environmentId, path, browser } = await openProject();
  messages[environmentId] = [toLine('plain')];
  const { text } = await browser.get(`${path}?range=30d`);
  expect([text.includes('data-points'), findShown(text)]).toEqual([false, ['plain']]);
  const link = /href="([^"]*chart=now[^"]*)"/.exec(text)![1]!.replaceAll('&amp;', '&');
  const chart = (await browser.get(link)).text;
  expect([chart.includes('data-points'), findShown(chart)]).toEqual([true, []]);
});

it('the panel shows a message in full to a developer, with all digits of its properties', async () => {
  const { environmentId, path, browser } = await openProject();
  messages[environmentId] = [createMessageLine({ userId: 'ada@example.org', receivedMs: 1479, happenedMs: 1000 })];
  details[ID] = { properties: '{"level":12,"steam":76561198000000001}', pageUrl: 'https://game.example/shop' };
  const { text } = await browser.get(`${path}?message=${ID.toUpperCase()}`);
  for (const expected of [
    '+479 ms',
    '76561198000000001',
    'https://game.example/shop',
    'ada@example.org',
    'Open person',
  ])
    expect(text).toContain(expected);
});

it('an analyst sees no ids, pages or undeclared properties, and cannot filter by them or by player', async () => {
  const { environmentId, path, browser } = await openProject('analyst');
  messages[environmentId] = [createMessageLine({ userId: 'ada@example.org' })];
  details[ID] = { properties: '{"friend":"bob@example.org"}', pageUrl: 'https://bob@example.org' };
  const { text } = await browser.get(`${path}?message=${ID}`);
  expect(text).toContain('ad…');
  for (const hidden of ['example.org', 'friend', 'Open person', 'name="property"', 'analysis_events_raw', 'Trace id'])
    expect(text).not.toContain(hidden);
  expect((await browser.get(`${path}?property=level&value=3`)).text).toContain('declares safe');
  expect((await browser.get(`${path}?identity=${'ab'.repeat(16)}`)).status).toBe(400);
});

it('an analyst can read and filter by a property that the project declares safe', async () => {
  const { environmentId, path, browser, project } = await openProject('analyst');
  const store = portal.parts.projects.storeFor({ changedBy: 'a test', requestId: 'r' });
  await store.change((all) => ({ ...all.find(({ id }) => id === project.id)!, safeProperties: ['level'] }));
  messages[environmentId] = [createMessageLine()];
  details[ID] = { properties: '{"friend":"bob","level":3}' };
  const { text } = await browser.get(`${path}?message=${ID}&property=level&value=3`);
  expect(text).toContain('name="property"');
  expect(text).toContain('JSONExtractRaw(safe_properties, ');
  expect([/level&quot;:3/.test(text), text.includes('friend')]).toEqual([true, false]);
});

it('a search that exceeds the read limits shows the reason and keeps the form', async () => {
  const { environmentId, path, browser } = await openProject();
  tooLarge.add(environmentId);
  const { status, text } = await browser.get(`${path}?event=jump`);
  expect(status).toBe(200);
  expect(text).toContain('too large');
  expect(text).toContain('value="jump"');
});

it('the explore page masks ids for an analyst in the list and in the export', async () => {
  const { environmentId, path, browser } = await openProject('analyst');
  messages[environmentId] = [toLine('plain', { userId: 'ada@example.org' })];
  for (const query of ['event=jump', 'event=jump&as=csv']) {
    const { text } = await browser.get(`${path}?${query}`);
    expect([text.includes('ad…'), text.includes('example.org')]).toEqual([true, false]);
  }
});

it.each([
  [`message=${OTHER_ID}`, 'No stored message has this id'],
  ['message=ada', 'Enter a message id'],
  ['type=x', 'expected one of'],
  ['surface=x', 'expected one of'],
  ['property=level&operator=like', 'expected one of'],
  ['property=level&operator=gt&value=high', 'Enter a number'],
  ['event=jump&since=yesterday', 'role="alert"'],
  ['event=jump&since=2026-02-01T00:00&until=2026-01-01T00:00', 'role="alert"'],
])('the explore page with %s shows %j', async (query, expected) => {
  const { path, browser } = await openProject();
  expect((await browser.get(`${path}?${query}`)).text).toContain(expected);
});
