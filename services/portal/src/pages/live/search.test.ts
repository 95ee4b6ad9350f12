import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { MessageLine } from '../../reads/index.ts';
import { createMemoryReads } from '../../test/memory-reads.ts';
import { keyOf, openPortal, type TestPortal } from '../../test/open-portal.ts';
import type { FoundMessage } from './search.ts';

const ID = '0b1f7a52-6c3e-4d8a-9f10-2e5c7d9a4b05';
const messages: Record<string, MessageLine[]> = {};
const found: Record<string, FoundMessage[]> = {};
let portal: TestPortal;
beforeAll(async () => {
  const searchMessages = async ({ environmentId }: { readonly environmentId: string }) => found[environmentId] ?? [];
  portal = await openPortal({ reads: createMemoryReads({ messages }), searchMessages });
});
afterAll(() => portal.close());

async function openProject() {
  const project = await portal.addProject('Sky');
  const environmentId = `${project.id}-production`;
  const path = `/projects/${project.id}/environments/production/live`;
  const lineOf = (traceId: string, over: Partial<MessageLine> = {}): MessageLine => ({
    messageId: `${traceId}-message`,
    happenedMs: Date.now(),
    receivedMs: Date.now(),
    type: 'track',
    name: 'jump',
    surface: 'web',
    library: '',
    libraryVersion: '',
    isTest: false,
    identityId: 'b'.repeat(32),
    consentLevel: '',
    anonymousId: '',
    userId: 'ada',
    identityType: '',
    traceId,
    ...over,
  });
  return { environmentId, path, lineOf, browser: await portal.signIn({ project, role: 'developer' }) };
}

/** Of these messages those that a page or a file shows. */
const shownIn = (text: string) =>
  ['plain', 'paged', 'on-unity', 'tested'].filter((word) => text.includes(`${word}-message`));

describe('the exact search', () => {
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
  ] as const)('by %s shows %j, on the page and in the file', async (query, expected) => {
    const { environmentId, path, lineOf, browser } = await openProject();
    messages[environmentId] = [
      ...[lineOf('plain'), lineOf('paged', { type: 'page', name: '' }), lineOf('on-unity', { surface: 'unity' })],
      lineOf('tested', { isTest: true }),
    ];
    expect(shownIn((await browser.get(`${path}?${query}`)).text)).toEqual(expected);
    expect(shownIn((await browser.get(`${path}?${query}&as=csv`)).text)).toEqual(expected);
  });

  it('goes on from a moment at which a search ran out of time, where it names no message', async () => {
    const { environmentId, path, lineOf, browser } = await openProject();
    const nowMs = Date.now();
    messages[environmentId] = [lineOf('plain', { happenedMs: nowMs }), lineOf('paged', { happenedMs: nowMs - 1 })];
    const shown = async (query: string) => shownIn((await browser.get(`${path}?event=jump&${query}`)).text);
    expect(await shown('')).toEqual(['plain', 'paged']);
    expect(await shown(`after=${nowMs}.`)).toEqual(['paged']);
  });

  it('is narrowed of a person as well, and says which messages are tests', async () => {
    const { environmentId, path, lineOf, browser } = await openProject();
    const identityId = keyOf(environmentId, 'email', 'ada').toString('hex');
    messages[environmentId] = [
      lineOf('plain', { identityId }),
      lineOf('tested', { identityId, isTest: true }),
      lineOf('paged'),
    ];
    const { text } = await browser.get(`${path}?who=${identityId}&stored-test=yes`);
    expect(shownIn(text)).toEqual(['tested']);
    expect(text).toContain('web (test)');
  });

  it.each([
    ['stored-type=track&stored-surface=web&stored-test=no', true],
    ['event=jump', true],
    ['stored-type=page', false],
    ['stored-surface=unity', false],
    ['stored-test=yes', false],
    ['event=fall', false],
  ] as const)('by an id and %s finds it: %s', async (query, isFound) => {
    const { environmentId, path, browser } = await openProject();
    found[environmentId] = [
      {
        messageId: ID,
        type: 'track',
        name: 'jump',
        receivedAt: 1,
        surface: 'web',
        isTest: false,
        traceId: 'the-trace',
      },
    ];
    const { text } = await browser.get(`${path}?find=${ID}&${query}`);
    expect([text.includes('the-trace'), text.includes('stored under this id is of another')]).toEqual([
      isFound,
      !isFound,
    ]);
  });

  it('keeps what was chosen, leaves what is live alone, and says what is none of the choices', async () => {
    const { path, browser } = await openProject();
    const { text } = await browser.get(`${path}?stored-type=alias&stored-test=no`);
    expect(text).toContain('<option value="alias" selected>');
    expect(text).toContain(`data-events="${path}/events"`);
    for (const wrong of ['stored-type=x', 'stored-surface=x', 'stored-test=x', `find=${ID}&stored-type=x`])
      expect((await browser.get(`${path}?${wrong}`)).text).toContain('expected one of');
  });
});
