import type { AuditEntry } from '@playline/access-keys';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CSV_LINES_MAX } from '../../frame/csv.ts';
import type { MessageLine } from '../../reads/index.ts';
import { createMemoryReads } from '../../test/memory-reads.ts';
import { createMessageLine } from '../../test/message-line.ts';
import { openPortal, type TestPortal } from '../../test/open-portal.ts';
import { toMessagesFile } from './page.ts';

const NOW_MS = Date.parse('2026-11-01T10:00:00.250Z');
let created = 0;
const createMessage = (overrides: Partial<MessageLine> = {}) =>
  createMessageLine({
    messageId: String(created++).padStart(8, '0'),
    happenedMs: NOW_MS,
    receivedMs: NOW_MS + 5,
    anonymousId: 'visitor-7',
    userId: 'player-7',
    ...overrides,
  });

let portal: TestPortal;
const messages: Record<string, MessageLine[]> = {};
const entries: AuditEntry[] = [];
beforeAll(async () => {
  const audit = { append: async (entry: AuditEntry) => void entries.push(entry) };
  portal = await openPortal({ reads: createMemoryReads({ messages }), audit });
});
afterAll(() => portal.close());

async function openProject(role: 'developer' | 'analyst' = 'developer') {
  const project = await portal.addProject('Game');
  const environmentId = `${project.id}-production`;
  const path = `/projects/${project.id}/environments/production/explore?since=2026-01-01T00:00`;
  return { project, environmentId, path, browser: await portal.signIn({ project, role }) };
}

const splitLines = (text: string) => text.split('\r\n').slice(0, -1);

it('the explore page links to an export of all matching messages, and the export is not cached', async () => {
  const { browser, path, environmentId } = await openProject();
  messages[environmentId] = [createMessage(), createMessage({ name: '', type: 'page' })];
  const link = /href="([^"]*as=csv[^"]*)"/.exec((await browser.get(path)).text)?.[1]?.replaceAll('&amp;', '&') ?? '';
  const { status, text, headers } = await browser.get(link);
  expect([status, headers.get('cache-control')]).toEqual([200, 'no-store']);
  expect(headers.get('content-type')).toContain('text/csv');
  expect(headers.get('content-disposition')).toContain(`messages-${environmentId}.csv`);
  expect(splitLines(text)).toHaveLength(3);
  expect(text).toContain('"2026-11-01T10:00:00.250Z","2026-11-01T10:00:00.255Z","track","jump","web","no","ts","1"');
});

it('the last line of a truncated export contains the end of the time range for the next export', async () => {
  const list = Array.from({ length: 2_000 }, () => createMessage());
  let remaining = 120_000;
  const readPage = async ({ messagesMax = 0 }: { readonly messagesMax?: number }) => {
    remaining -= messagesMax;
    const next = remaining > 0 ? { happenedMs: NOW_MS, messageId: 'm' } : null;
    return { lines: list.slice(0, messagesMax), next, searchedSinceMs: 0 };
  };
  const search = { environmentId: 'e', sinceMs: 0, untilMs: NOW_MS, idAccess: 'raw ids' as const };
  const file = toMessagesFile({ messages: readPage }, search, new AbortController().signal);
  let [lines, last] = [0, ''];
  for await (const chunk of file.chunks) {
    lines += chunk.split('\r\n').length - 1;
    last = chunk.split('\r\n').at(-2) ?? '';
  }
  expect(lines).toBe(CSV_LINES_MAX + 2);
  expect(last).toContain('search until 2026-11-01T10:00:01');
});

it('the audit log records the time range of an export without the search terms', async () => {
  const { browser, path, project, environmentId } = await openProject();
  messages[environmentId] = [createMessage()];
  entries.length = 0;
  await browser.get(`${path}&as=csv&event=player-7`);
  const detail = { since: '2026-01-01T00:00:00.000Z', until: expect.any(String), ids: 'raw ids' };
  expect(entries).toMatchObject([{ action: 'messages.save', projectId: project.id, object: environmentId, detail }]);
  expect(JSON.stringify(entries)).not.toContain('player-7');
});

it.each(['as=csv&since=yesterday', 'as=csv&since=2026-11-02T00:00&until=2026-11-01T00:00'])(
  'an export with an invalid search (%s) returns the page',
  async (query) => {
    const { browser, path } = await openProject();
    const { headers } = await browser.get(`${path.split('?')[0]}?${query}`);
    expect(headers.get('content-type')).toContain('text/html');
  },
);
