import { expect, it } from 'vitest';
import type { MessageLine } from '../../reads/index.ts';
import { createMemoryReads } from '../../test/memory-reads.ts';
import { createMessageLine } from '../../test/message-line.ts';
import { keyOf, usePortal } from '../../test/open-portal.ts';

const ID = createMessageLine().messageId;
const OTHER_ID = '0b1f7a52-6c3e-4d8a-9f10-2e5c7d9a4b06';
const messages: Record<string, MessageLine[]> = {};
const portal = usePortal({ reads: createMemoryReads({ messages }) });

async function openProject(role: 'developer' | 'analyst' = 'developer') {
  const project = await portal.addProject('Sky');
  const environmentId = `${project.id}-production`;
  const path = `/projects/${project.id}/environments/production/live`;
  return { environmentId, path, browser: await portal.signIn({ project, role }) };
}

const toLine = (traceId: string, overrides: Partial<MessageLine> = {}) =>
  createMessageLine({ messageId: `${traceId}-message`, traceId, ...overrides });

const findShown = (text: string) =>
  ['plain', 'paged', 'on-unity', 'tested'].filter((name) => text.includes(`${name}-message`));

it.each([
  ['stored-type=track', ['plain', 'on-unity', 'tested']],
  ['stored-type=page', ['paged']],
  ['stored-surface=unity', ['on-unity']],
  ['stored-test=yes', ['tested']],
  ['stored-test=no', ['plain', 'paged', 'on-unity']],
  ['stored-type=track&stored-surface=web&stored-test=no', ['plain']],
  ['stored-type=track&event=jump&stored-surface=unity', ['on-unity']],
  ['stored-type=page&event=jump', []],
  ['stored-surface=pixel', []],
] as const)('the message search with %s shows %j on the page and in the export', async (query, expected) => {
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

it('the message search continues after a search that timed out between two messages', async () => {
  const { environmentId, path, browser } = await openProject();
  const nowMs = Date.now();
  messages[environmentId] = [toLine('plain', { happenedMs: nowMs }), toLine('paged', { happenedMs: nowMs - 1 })];
  const shown = async (query: string) => findShown((await browser.get(`${path}?event=jump&${query}`)).text);
  expect(await shown('')).toEqual(['plain', 'paged']);
  expect(await shown(`after=${nowMs}.`)).toEqual(['paged']);
});

it('the message search by person applies the remaining filters on the page and in the export', async () => {
  const { environmentId, path, browser } = await openProject();
  const identityId = keyOf(environmentId, 'email', 'ada').toString('hex');
  messages[environmentId] = [
    toLine('plain', { identityId }),
    toLine('tested', { identityId, isTest: true }),
    toLine('paged', { isTest: true }),
  ];
  const query = `${path}?who=${identityId}&stored-test=yes`;
  const { text } = await browser.get(query);
  expect([findShown(text), text.includes('web (test)')]).toEqual([['tested'], true]);
  expect(findShown((await browser.get(`${query}&as=csv`)).text)).toEqual(['tested']);
});

it('the message search masks ids for an analyst on the page and in the export', async () => {
  const { environmentId, path, browser } = await openProject('analyst');
  messages[environmentId] = [toLine('plain', { userId: 'ada@example.org' })];
  for (const query of ['event=jump', 'event=jump&as=csv']) {
    const { text } = await browser.get(`${path}?${query}`);
    expect([text.includes('ad…'), text.includes('example.org')]).toEqual([true, false]);
  }
});

it.each([
  ['stored-type=track&stored-surface=web&stored-test=no', true],
  ['event=jump', true],
  ['stored-type=page', false],
  ['stored-surface=unity', false],
  ['stored-test=yes', false],
  ['event=fall', false],
] as const)('the message search by message id and %s finds the message: %s', async (query, isFound) => {
  const { environmentId, path, browser } = await openProject();
  messages[environmentId] = [createMessageLine({ traceId: 'the-trace' })];
  const { text } = await browser.get(`${path}?find=${ID.toUpperCase()}&${query}`);
  expect([text.includes('the-trace'), text.includes('does not match the other fields')]).toEqual([isFound, !isFound]);
});

it.each([
  [`find=${OTHER_ID}`, 'No stored message has this id'],
  ['find=ada', 'Enter a message id'],
  ['stored-type=x', 'expected one of'],
  ['stored-surface=x', 'expected one of'],
  ['stored-test=x', 'expected one of'],
  [`find=${ID}&stored-type=x`, 'expected one of'],
  ['event=jump&since=yesterday', 'role="alert"'],
  ['event=jump&since=2026-02-01T00:00&until=2026-01-01T00:00', 'role="alert"'],
])('the message search with %s shows %j', async (query, expected) => {
  const { path, browser } = await openProject();
  expect((await browser.get(`${path}?${query}`)).text).toContain(expected);
});

it('the message search retains its field values and does not change the live filter', async () => {
  const { path, browser } = await openProject();
  const { text } = await browser.get(`${path}?stored-type=alias&stored-test=no`);
  expect(text).toContain('<option value="alias" selected>');
  expect(text).toContain(`data-events="${path}/events"`);
});
