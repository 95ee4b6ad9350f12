import type { AuditEntry } from '@playline/access-keys';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CSV_LINES_MAX } from '../../frame/csv.ts';
import type { MessageLine } from '../../reads/index.ts';
import { createMemoryReads } from '../../test/memory-reads.ts';
import { keyOf, openPortal, type TestPortal } from '../../test/open-portal.ts';
import { toStoredFile } from './page.ts';

const NOW_MS = Date.parse('2026-11-01T10:00:00.250Z');
let made = 0;
const messageOf = (over: Partial<MessageLine> = {}): MessageLine => ({
  messageId: String(made++).padStart(8, '0'),
  happenedMs: NOW_MS,
  receivedMs: NOW_MS + 5,
  type: 'track',
  name: 'jump',
  surface: 'web',
  library: 'ts',
  libraryVersion: '1',
  isTest: false,
  consentLevel: 'full',
  anonymousId: 'visitor-7',
  userId: 'player-7',
  identityType: 'user',
  identityId: '0'.repeat(32),
  traceId: 'a trace',
  ...over,
});

let portal: TestPortal;
const messages: Record<string, MessageLine[]> = {};
const entries: AuditEntry[] = [];
const asked: number[] = [];
beforeAll(async () => {
  const reads = createMemoryReads({ messages });
  portal = await openPortal({
    reads: {
      ...reads,
      messages: async (search) => {
        const page = await reads.messages(search);
        asked.push(page.messages.length);
        return page;
      },
    },
    audit: { append: async (entry) => void entries.push(entry) },
    searchMessages: async () => [],
  });
});
afterAll(() => portal.close());

async function openProject(role: 'developer' | 'analyst' = 'developer') {
  const project = await portal.addProject('Game');
  const environmentId = `${project.id}-production`;
  const path = `/projects/${project.id}/environments/production/live?since=2026-01-01T00:00`;
  return { project, environmentId, path, browser: await portal.signIn({ project, role }) };
}

const linesOf = (text: string) => text.split('\r\n').slice(0, -1);

describe('a search of messages as a file', () => {
  it('has what the page shows, whole, by the link that stands below it, and is kept in no cache', async () => {
    const { browser, path, environmentId } = await openProject();
    messages[environmentId] = [messageOf(), messageOf({ name: '', type: 'page', isTest: true })];
    const link = /href="([^"]*as=csv[^"]*)"/.exec((await browser.get(path)).text)?.[1]?.replaceAll('&amp;', '&') ?? '';
    const { status, text, headers } = await browser.get(link);
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect(headers.get('content-type')).toContain('text/csv');
    expect(headers.get('content-disposition')).toContain(`messages-${environmentId}.csv`);
    expect(linesOf(text)).toHaveLength(3);
    expect(text).toContain('"2026-11-01T10:00:00.250Z","2026-11-01T10:00:00.255Z","track","jump","web","no","ts","1"');
  });

  it('keeps the filters of the search, and those of the person', async () => {
    const { browser, path, environmentId } = await openProject();
    const who = keyOf(environmentId, 'untyped', 'player-9').toString('hex');
    messages[environmentId] = [
      messageOf({ traceId: 'jumped' }),
      messageOf({ name: 'fall', traceId: 'fell' }),
      messageOf({ name: 'fall', identityId: who, traceId: 'theirs' }),
    ];
    const fileOf = async (filter: string) => (await browser.get(`${path}&as=csv&${filter}`)).text;
    expect(linesOf(await fileOf('event=fall'))).toHaveLength(3);
    expect(linesOf(await fileOf('event=fall'))[1]).not.toContain('jumped');
    const theirs = await fileOf(`event=fall&who=${who}`);
    expect([linesOf(theirs).length, theirs.includes('theirs')]).toEqual([2, true]);
  });

  it('shows ids as the role may see them, and is not there for somebody else', async () => {
    const { browser, path, environmentId } = await openProject('analyst');
    messages[environmentId] = [messageOf()];
    const { text } = await browser.get(`${path}&as=csv`);
    expect([text.includes('player-7'), text.includes('visitor-7'), text.includes('"pl…"')]).toEqual([
      false,
      false,
      true,
    ]);
    const stranger = await openProject();
    expect((await stranger.browser.get(`${path}&as=csv`)).status).toBe(404);
  });

  it.each(['=1+1', '+1', '-1', '@x', '\t1', '\r1'])('has no formula in it, such as %j', async (words) => {
    const { browser, path, environmentId } = await openProject();
    messages[environmentId] = [messageOf({ name: words, userId: words, surface: words })];
    const { text } = await browser.get(`${path}&as=csv`);
    expect(text.split(`,"'${words}"`)).toHaveLength(4);
    expect(text).not.toContain(`"${words}"`);
  });

  it('is made a part at a time, each message once, also where many are of one moment', async () => {
    const { browser, path, environmentId } = await openProject();
    const list = Array.from({ length: 5_000 }, (_, at) => messageOf({ happenedMs: NOW_MS - Math.floor(at / 3_000) }));
    messages[environmentId] = list;
    asked.length = 0;
    const { text } = await browser.get(`${path}&as=csv`);
    const ids = linesOf(text)
      .slice(1)
      .map((line) => line.split(',')[10]);
    expect([ids.length, new Set(ids).size, Math.max(...asked)]).toEqual([5_000, 5_000, 2_000]);
  });

  it('says in its last line where it ended, when there is more than it takes', async () => {
    const list = Array.from({ length: 2_000 }, () => messageOf());
    let left = 120_000;
    const readPage = async ({ messagesMax = 0 }: { readonly messagesMax?: number }) => {
      left -= messagesMax;
      const place = { happenedMs: NOW_MS, messageId: 'm' };
      return { messages: list.slice(0, messagesMax), next: left > 0 ? place : null, searchedSinceMs: 0 };
    };
    const search = { environmentId: 'e', sinceMs: 0, untilMs: NOW_MS, idAccess: 'raw ids' as const };
    const file = toStoredFile({ messages: readPage }, { search, signal: new AbortController().signal });
    if (file.kind !== 'long file') throw new Error('it is a file');
    let [lines, last] = [0, ''];
    for await (const piece of file.pieces) {
      lines += piece.split('\r\n').length - 1;
      last = piece.split('\r\n').at(-2) ?? '';
    }
    expect(lines).toBe(CSV_LINES_MAX + 2);
    expect(last).toContain('search until 2026-11-01T10:00:01');
  });

  it('leaves a line in the audit that says who took it and of which time, and nobody’s id', async () => {
    const { browser, path, project, environmentId } = await openProject();
    messages[environmentId] = [messageOf()];
    entries.length = 0;
    await browser.get(`${path}&as=csv&event=player-7`);
    const detail = { since: '2026-01-01T00:00:00.000Z', until: expect.any(String), ids: 'raw ids' };
    expect(entries).toMatchObject([{ action: 'messages.save', projectId: project.id, object: environmentId, detail }]);
    expect(JSON.stringify(entries)).not.toContain('player-7');
  });

  it('is no file where nothing is looked for, or not as it may be said: the page tells', async () => {
    const { browser, path } = await openProject();
    const at = path.split('?')[0]!;
    for (const query of ['as=csv', 'as=csv&since=yesterday', 'as=csv&since=2026-11-02T00:00&until=2026-11-01T00:00'])
      expect((await browser.get(`${at}?${query}`)).headers.get('content-type')).toContain('text/html');
  });
});
