import { type AccountRecord, type AuditEntry, type AuditLog, type Content, createKey } from '@playline/access-keys';
import { until } from '@playline/testkit/until';
import { afterEach, expect, it } from 'vitest';
import { createLiveWorld, type LiveWorld } from '../../live/test/live-world.ts';
import { keyOf, openPortal, type TestPortal } from '../../test/open-portal.ts';
import type { TestBrowser } from '../../test/test-browser.ts';

let portals: TestPortal[] = [];
let aborts: AbortController[] = [];
afterEach(async () => {
  for (const abort of aborts) abort.abort();
  for (const portal of portals) await portal.close();
  [portals, aborts] = [[], []];
});

const AUTHOR = { changedBy: 'a test', requestId: 'r' };

async function open(audit: AuditLog = { append: async () => {} }) {
  const world = createLiveWorld();
  const portal = await openPortal({ live: world.hub, audit });
  portals.push(portal);
  const project = await portal.addProject('Sky');
  const environmentId = `${project.id}-production`;
  const path = `/projects/${project.id}/environments/production/live`;
  return { world, portal, project, environmentId, path };
}

async function openStream(portal: TestPortal, path: string, headers: Record<string, string>) {
  const abort = new AbortController();
  aborts.push(abort);
  const response = await fetch(portal.origin + path, { headers, signal: abort.signal, redirect: 'manual' });
  const received = { text: '', isClosed: false };
  const read = async () => {
    for await (const chunk of response.body ?? []) received.text += Buffer.from(chunk).toString();
  };
  const end = () => (received.isClosed = true);
  read().then(end, end);
  return { response, received };
}

const untilPolling = (world: LiveWorld) =>
  until('the hub polls', () => world.hub.subscribers > 0 && world.observed.requests > 8);

it('the live page shows how to send a first message with the publishable key', async () => {
  const { portal, project, environmentId, path } = await open();
  const developer = await portal.signIn({ project, role: 'developer' });
  expect((await developer.get(path)).text).toContain('no publishable key yet');
  const scope = { projectId: project.id, environmentId, environment: 'production' } as const;
  const { key } = await createKey(
    { store: portal.parts.keys.storeFor(AUTHOR), prefix: 'svcapik' },
    { ...scope, kind: 'publishable' },
  );
  const { text } = await developer.get(path);
  expect(text).toContain('Waiting for the next message');
  expect(text).toContain(`x-service-publishable-key: ${key}`);
  expect(text).toContain('http://gateway.test/v1/audience/messages');
  expect(text).toContain('/assets/live.js');
});

it('the live page reads the filter from the URL, passes it to the stream and rejects an invalid filter', async () => {
  const { portal, project, path } = await open();
  const analyst = await portal.signIn({ project, role: 'analyst' });
  const { text } = await analyst.get(`${path}?type=track&name=level&surface=&outcome=stored`);
  expect(text).toContain('<option value="track" selected>');
  expect(text).toContain(`data-events="${path}/events?type=track&amp;name=level&amp;outcome=stored"`);
  const refused = await analyst.get(`${path}?id=ada%40example.org`);
  expect([refused.status, refused.text.includes('a message id (UUID)')]).toEqual([400, true]);
});

it('the person filter matches every id type in the stream, and no URL contains the id', async () => {
  const { world, portal, project, environmentId, path } = await open();
  const adaKey = keyOf(environmentId, 'email', 'ada@example.org');
  const developer = await portal.signIn({ project, role: 'developer' });
  const response = await developer.submit(`${path}?type=track`, 'person', { person: 'ada@example.org' });
  const location = response.headers.get('location') ?? '';
  expect([response.status, location.includes('example'), location.includes('type=track')]).toEqual([303, false, true]);
  const { text } = await developer.get(location);
  expect(text).toContain('One player');
  const events = /data-events="([^"]*)"/.exec(text)![1]!.replaceAll('&amp;', '&');
  expect(events).not.toContain('example');
  const { received } = await openStream(portal, events, { cookie: developer.cookie });
  await untilPolling(world);
  const send = (eventName: string, changes: object) => world.send({ environmentId, eventName, ...changes });
  await send('from another person', { userKey: keyOf(environmentId, 'email', 'bob@example.org') });
  await send('as a user', { userKey: adaKey });
  await send('as a visitor', { anonymousKey: keyOf(environmentId, 'anonymous', 'ada@example.org') });
  await until('both messages arrive', () => /"as a visitor"/.test(received.text) && /"as a user"/.test(received.text));
  expect(received.text).not.toContain('from another person');
  expect((await developer.submit(path, 'person', { person: '' })).status).toBe(400);
});

it('an analyst cannot filter by identity key on the live page or in the stream', async () => {
  const { world, portal, project, environmentId, path } = await open();
  const analyst = await portal.signIn({ project, role: 'analyst' });
  const key = keyOf(environmentId, 'email', 'ada@example.org');
  for (const each of [path, `${path}/events`])
    expect([each, (await analyst.get(`${each}?name=level&identity=${key.toString('hex')}`)).status]).toEqual([
      each,
      400,
    ]);
  const headers = { cookie: analyst.cookie };
  const { received } = await openStream(portal, `${path}/events?id=${key.toString('hex')}`, headers);
  const { received: unfiltered } = await openStream(portal, `${path}/events`, headers);
  await untilPolling(world);
  await world.send({ environmentId, eventName: 'from-ada', userKey: key });
  await until('the message arrives without the filter', () => unfiltered.text.includes('"from-ada"'));
  expect(received.text).not.toContain('"from-ada"');
});

it('the audit log records a person search without the id', async () => {
  const entries: AuditEntry[] = [];
  const { portal, project, path } = await open({ append: async (entry) => void entries.push(entry) });
  const developer = await portal.signIn({ project, role: 'developer' });
  await developer.submit(path, 'person', { person: 'ada@example.org' });
  expect(entries).toMatchObject([{ action: 'person.find', projectId: project.id, detail: { page: 'live', by: 'id' } }]);
  expect(JSON.stringify(entries)).not.toContain('example.org');
});

it('the live stream sends messages from one environment, and masks ids only for analysts', async () => {
  const { world, portal, project, environmentId, path } = await open();
  const developer = await portal.signIn({ project, role: 'developer' });
  const analyst = await portal.signIn({ project, role: 'analyst' });
  const raw = await openStream(portal, `${path}/events`, { cookie: developer.cookie, 'last-event-id': '7' });
  const masked = await openStream(portal, `${path}/events`, { cookie: analyst.cookie });
  expect(raw.response.headers.get('content-type')).toContain('text/event-stream');
  await untilPolling(world);
  await world.send({ environmentId, userId: 'ada@example.org', eventName: 'sent' });
  await world.send({ environmentId: `${environmentId}-2`, eventName: 'from another environment' });
  await until('both messages arrive', () => [raw, masked].every(({ received }) => received.text.includes('"sent"')));
  expect(raw.received.text).toContain('ada@example.org');
  expect(masked.received.text).toContain('ad…');
  expect(masked.received.text).not.toContain('example.org');
  expect(raw.received.text + masked.received.text).not.toContain('from another environment');
});

it('an account can open eight live streams, and a HEAD request opens no stream', async () => {
  const { world, portal, project, path } = await open();
  const first = await portal.signIn({ project, role: 'analyst' });
  const second = await portal.signIn({ project, role: 'analyst' });
  const openTab = async ({ cookie }: TestBrowser) => (await openStream(portal, `${path}/events`, { cookie })).response;
  const statuses = [];
  for (let tab = 0; tab < 9; tab++) statuses.push((await openTab(first)).status);
  expect(statuses).toEqual([...Array.from({ length: 8 }, () => 200), 429]);
  expect((await openTab(second)).status).toBe(200);
  const head = await fetch(`${portal.origin}${path}/events`, { method: 'HEAD', headers: { cookie: second.cookie } });
  expect(head.status).toBe(404);
  expect(world.hub.subscribers).toBe(9);
});

it('a project can open sixteen live streams without affecting other projects or administrators', async () => {
  const { world, portal, project, path } = await open();
  const openStatus = async ({ cookie }: TestBrowser, streamPath = path) =>
    (await openStream(portal, `${streamPath}/events`, { cookie })).response.status;
  const people = await Promise.all(Array.from({ length: 3 }, () => portal.signIn({ project, role: 'analyst' })));
  const statuses = [];
  for (const person of people) for (let tab = 0; tab < 7; tab++) statuses.push(await openStatus(person));
  expect(statuses.filter((status) => status === 200)).toHaveLength(16);
  expect(statuses.slice(16)).toEqual(Array.from({ length: 5 }, () => 429));
  const otherProject = await portal.addProject('Other');
  const otherPath = `/projects/${otherProject.id}/environments/production/live`;
  expect(await openStatus(await portal.signIn({ project: otherProject, role: 'analyst' }), otherPath)).toBe(200);
  expect(await openStatus(await portal.signIn())).toBe(200);
  expect(world.hub.subscribers).toBe(18);
});

it.each<[string, (scope: EndScope) => Promise<unknown>]>([
  [
    'the session ends',
    async ({ portal, account }) => {
      for (const { id } of await portal.parts.sessions.list(account)) await portal.parts.sessions.end(id);
    },
  ],
  [
    'the role changes',
    ({ portal, account, project }) =>
      change(portal, account, (now) => ({ ...now, roles: [{ projectId: project, role: 'analyst' }] })),
  ],
  [
    'the credentials change while the session still exists',
    ({ portal, account }) => change(portal, account, (now) => ({ ...now, sessionsFrom: now.revision + 1 })),
  ],
  ['the role is removed', ({ portal, account }) => change(portal, account, (now) => ({ ...now, roles: [] }))],
  [
    'the account is disabled',
    ({ portal, account }) => change(portal, account, (now) => ({ ...now, state: 'disabled' })),
  ],
  [
    'the environment is removed',
    ({ portal, project }) =>
      portal.parts.projects.storeFor(AUTHOR).change((all) => {
        const found = all.find(({ id }) => id === project)!;
        return { ...found, environments: found.environments.filter(({ name }) => name !== 'production') };
      }),
  ],
])('the live stream sends an end event and closes when %s', async (_cause, end) => {
  const { world, portal, project, path } = await open();
  const developer = await portal.signIn({ project, role: 'developer' });
  const { received } = await openStream(portal, `${path}/events`, { cookie: developer.cookie });
  await untilPolling(world);
  const account = (await portal.parts.accounts.all()).find(({ roles }) =>
    roles.some((each) => each.role === 'developer'),
  )!;
  await end({ portal, account: account.id, project: project.id });
  await until('the stream closes', () => received.isClosed);
  expect(received.text).toContain('"kind":"end"');
  expect(world.hub.subscribers).toBe(0);
});

interface EndScope {
  readonly portal: TestPortal;
  readonly account: string;
  readonly project: string;
}

const change = (portal: TestPortal, id: string, to: (now: AccountRecord) => Content<AccountRecord>) =>
  portal.parts.accounts.storeFor(AUTHOR).change((all) => to(all.find((each) => each.id === id)!));
