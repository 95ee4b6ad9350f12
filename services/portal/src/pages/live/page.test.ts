import { type AccountRecord, type AuditEntry, type AuditLog, type Content, createKey } from '@playline/access-keys';
import { until } from '@playline/testkit/until';
import { afterEach, describe, expect, it } from 'vitest';
import { createLiveWorld, type LiveWorld } from '../../live/test/live-world.ts';
import type { MessageLine } from '../../reads/index.ts';
import { createMemoryReads } from '../../test/memory-reads.ts';
import { keyOf, openPortal, type TestPortal } from '../../test/open-portal.ts';
import type { TestBrowser } from '../../test/test-browser.ts';
import type { FoundMessage, SearchMessages } from './search.ts';

let portals: TestPortal[] = [];
let stops: AbortController[] = [];
afterEach(async () => {
  for (const stop of stops) stop.abort();
  for (const portal of portals) await portal.close();
  [portals, stops] = [[], []];
});

const messages: Record<string, MessageLine[]> = {};

async function open(searchMessages: SearchMessages | null = null, audit: AuditLog = { append: async () => {} }) {
  const world = createLiveWorld();
  const portal = await openPortal({ live: world.hub, searchMessages, reads: createMemoryReads({ messages }), audit });
  portals.push(portal);
  const project = await portal.addProject('Sky');
  const path = `/projects/${project.id}/environments/production/live`;
  return { world, portal, project, path };
}

/** Reads a stream as it comes. */
async function openStream(portal: TestPortal, path: string, headers: Record<string, string>) {
  const stop = new AbortController();
  stops.push(stop);
  const answer = await fetch(portal.origin + path, { headers, signal: stop.signal, redirect: 'manual' });
  const seen = { text: '', isOver: false };
  const read = async () => {
    for await (const chunk of answer.body ?? []) seen.text += Buffer.from(chunk).toString();
  };
  read().then(
    () => (seen.isOver = true),
    () => (seen.isOver = true),
  );
  return { answer, seen };
}

const watched = (world: LiveWorld) =>
  until('somebody looks', () => world.hub.subscribers > 0 && world.requested.requests > 8);

describe('the page of live messages', () => {
  it('says what to do when nothing comes, with a command that bears the publishable key', async () => {
    const { portal, project, path } = await open();
    const developer = await portal.signIn({ project, role: 'developer' });
    expect((await developer.get(path)).text).toContain('no publishable key yet');
    const wanted = {
      projectId: project.id,
      environmentId: `${project.id}-production`,
      environment: 'production',
    } as const;
    const { key } = await createKey(
      { store: portal.parts.keys.changedBy(AUTHOR), prefix: 'svcapik' },
      { ...wanted, kind: 'publishable' },
    );
    const { text } = await developer.get(path);
    expect(text).toContain('Waiting for the first message');
    expect(text).toContain(`x-service-publishable-key: ${key}`);
    expect(text).toContain('http://gateway.test/v1/audience/messages');
    expect(text).toContain('/assets/live.js');
  });

  it('keeps its filter in the address, hands it to the stream, and refuses one that is none', async () => {
    const { portal, project, path } = await open();
    const analyst = await portal.signIn({ project, role: 'analyst' });
    const { text } = await analyst.get(`${path}?type=track&name=level&surface=&fate=stored`);
    expect(text).toContain('<option value="track" selected>');
    expect(text).toContain(`data-events="${path}/events?type=track&amp;name=level&amp;fate=stored"`);
    const refused = await analyst.get(`${path}?id=ada%40example.org`);
    expect([refused.status, refused.text.includes('a message id (UUID)')]).toEqual([400, true]);
  });

  it('searches what is stored without JavaScript, in its own environment, and says so where nothing is found', async () => {
    const asked: unknown[] = [];
    const found: FoundMessage = {
      messageId: '0b1f7a52-6c3e-4d8a-9f10-2e5c7d9a4b05',
      type: 'track',
      name: '<b>x</b>',
      receivedAt: 1,
      surface: 'web',
      isTest: false,
      traceId: 'a'.repeat(32),
    };
    const { portal, project, path } = await open(async (question) => {
      asked.push(question);
      return asked.length === 1 ? [found] : [];
    });
    const analyst = await portal.signIn({ project, role: 'analyst' });
    const { text } = await analyst.get(`${path}?find=${found.messageId.toUpperCase()}`);
    expect(text).toContain('&lt;b&gt;x&lt;/b&gt;');
    expect(asked).toEqual([{ environmentId: `${project.id}-production`, id: found.messageId }]);
    expect((await analyst.get(`${path}?find=${'b'.repeat(8)}-bbbb-4bbb-8bbb-${'b'.repeat(12)}`)).text).toContain(
      'Nothing is stored under this id',
    );
    expect((await analyst.get(`${path}?find=ada`)).text).toContain('Give a message id');
    expect(asked).toHaveLength(2);
  });

  it('makes a filter of a person’s id, of any kind, without the id in an address, for whoever sees raw ids', async () => {
    const { world, portal, project, path } = await open(async () => []);
    const developer = await portal.signIn({ project, role: 'developer' });
    const answer = await developer.submit(`${path}?type=track`, 'person', { person: 'ada@example.org' });
    const location = answer.headers.get('location') ?? '';
    expect([answer.status, location.includes('example'), location.includes('type=track')]).toEqual([303, false, true]);
    const { text } = await developer.get(location);
    expect(text).toContain('Messages of one person are shown');
    const events = /data-events="([^"]*)"/.exec(text)![1]!.replaceAll('&amp;', '&');
    expect(events).not.toContain('example');
    const { seen } = await openStream(portal, events, { cookie: developer.cookie });
    await watched(world);
    const environmentId = `${project.id}-production`;
    const send = (eventName: string, changes: object) => world.send({ environmentId, eventName, ...changes });
    await send('of another', { userKey: keyOf(environmentId, 'email', 'bob@example.org') });
    await send('as a user', { userKey: keyOf(environmentId, 'email', 'ada@example.org') });
    await send('as a visitor', { anonymousKey: keyOf(environmentId, 'anonymous', 'ada@example.org') });
    await until('both are told', () => seen.text.includes('"as a visitor"') && seen.text.includes('"as a user"'));
    expect(seen.text).not.toContain('of another');
    expect((await developer.submit(path, 'person', { person: '' })).status).toBe(400);
  });

  it('gives analysts no form for the id of a person, and takes none from them', async () => {
    const { portal, project, path } = await open();
    const analyst = await portal.signIn({ project, role: 'analyst' });
    const { text } = await analyst.get(path);
    expect(analyst.formOf(text, 'person')).toBeNull();
    const developer = await portal.signIn({ project, role: 'developer' });
    const form = developer.formOf((await developer.get(path)).text, 'person')!;
    form.fields.set('person', 'ada@example.org');
    expect((await analyst.post(form.action, form.fields)).status).toBe(404);
  });

  it('filters by no identity key for an analyst: neither on the page, nor as a file, nor in the stream', async () => {
    const { world, portal, project, path } = await open(async () => []);
    const analyst = await portal.signIn({ project, role: 'analyst' });
    const environmentId = `${project.id}-production`;
    const key = keyOf(environmentId, 'email', 'ada@example.org');
    for (const place of [path, `${path}/events`]) {
      const { status, text } = await analyst.get(`${place}?as=csv&event=level&who=${key.toString('hex')}`);
      expect([place, status, text.includes('your role may not look for')]).toEqual([place, 400, true]);
    }
    const { seen } = await openStream(portal, `${path}/events?id=${key.toString('hex')}`, { cookie: analyst.cookie });
    const { seen: other } = await openStream(portal, `${path}/events`, { cookie: analyst.cookie });
    await watched(world);
    await world.send({ environmentId, eventName: 'hers', userKey: key });
    await until('it is shown without the filter', () => other.text.includes('"hers"'));
    expect(seen.text).not.toContain('"hers"');
  });

  it('leaves a line in the audit when somebody looks for a person, without the id', async () => {
    const entries: AuditEntry[] = [];
    const { portal, project, path } = await open(null, { append: async (entry) => void entries.push(entry) });
    const developer = await portal.signIn({ project, role: 'developer' });
    await developer.submit(path, 'person', { person: 'ada@example.org' });
    expect(entries).toMatchObject([
      { action: 'person.find', projectId: project.id, detail: { page: 'live', by: 'id' } },
    ]);
    expect(JSON.stringify(entries)).not.toContain('example.org');
  });

  it('searches what is stored by name and time, and by the person whom the filter names, as the role may see ids', async () => {
    const { portal, project, path } = await open(async () => []);
    const environmentId = `${project.id}-production`;
    const identityId = keyOf(environmentId, 'email', 'ada@example.org').toString('hex');
    const line: MessageLine = {
      messageId: '0b1f7a52-6c3e-4d8a-9f10-2e5c7d9a4b05',
      happenedMs: Date.now(),
      receivedMs: Date.now(),
      type: 'track',
      name: 'level',
      surface: 'web',
      library: '',
      libraryVersion: '',
      isTest: false,
      identityId,
      consentLevel: '',
      anonymousId: '',
      userId: 'ada@example.org',
      identityType: 'email',
      traceId: 'a'.repeat(32),
    };
    messages[environmentId] = [line, { ...line, name: 'jump', identityId: 'b'.repeat(32), userId: 'bob@example.org' }];
    const [developer, analyst] = [
      await portal.signIn({ project, role: 'developer' }),
      await portal.signIn({ project, role: 'analyst' }),
    ];
    const byName = await developer.get(`${path}?event=jump&since=2026-01-01+00:00`);
    expect(byName.text).toContain('bob@example.org');
    expect(byName.text).not.toContain('ada@example.org');
    const chosen = await developer.submit(path, 'person', { person: 'ada@example.org' });
    const ofPerson = await developer.get(chosen.headers.get('location')!);
    expect([ofPerson.text.includes('ada@example.org'), ofPerson.text.includes('bob@example.org')]).toEqual([
      true,
      false,
    ]);
    const masked = await analyst.get(`${path}?event=level`);
    expect([masked.text.includes('ad…'), masked.text.includes('example.org')]).toEqual([true, false]);
    for (const wrong of ['since=yesterday', 'since=2026-02-01T00:00&until=2026-01-01T00:00'])
      expect((await developer.get(`${path}?event=jump&${wrong}`)).text).toContain('role="alert"');
  });

  it('is not there for whoever has no role in the project, nor is its stream', async () => {
    const { world, portal, path } = await open();
    const stranger = await portal.signIn({ project: await portal.addProject('Other'), role: 'owner' });
    expect([(await stranger.get(path)).status, (await stranger.get(`${path}/events`)).status]).toEqual([404, 404]);
    const nobody = await openStream(portal, `${path}/events`, {});
    expect(nobody.answer.headers.get('content-type') ?? '').not.toContain('event-stream');
    expect(world.hub.subscribers).toBe(0);
  });
});

describe('the stream of live messages', () => {
  it('tells messages of its environment by its id, raw to a developer and masked to an analyst', async () => {
    const { world, portal, project, path } = await open();
    const [developer, analyst] = [
      await portal.signIn({ project, role: 'developer' }),
      await portal.signIn({ project, role: 'analyst' }),
    ];
    const [raw, masked] = [
      await openStream(portal, `${path}/events`, { cookie: developer.cookie, 'last-event-id': '7' }),
      await openStream(portal, `${path}/events`, { cookie: analyst.cookie }),
    ];
    expect(raw.answer.headers.get('content-type')).toContain('text/event-stream');
    await watched(world);
    await world.send({ environmentId: `${project.id}-production`, userId: 'ada@example.org', eventName: 'mine' });
    await world.send({ environmentId: `${project.id}-production-2`, eventName: 'of another' });
    await until('both are told', () => [raw, masked].every(({ seen }) => seen.text.includes('"mine"')));
    expect(raw.seen.text).toContain('ada@example.org');
    expect(masked.seen.text).toContain('ad…');
    expect(masked.seen.text).not.toContain('example.org');
    expect(raw.seen.text + masked.seen.text).not.toContain('of another');
  });

  it('is given eight times to one account, so that nobody takes the looks of all others, and never to a HEAD', async () => {
    const { world, portal, project, path } = await open();
    const [one, other] = [
      await portal.signIn({ project, role: 'analyst' }),
      await portal.signIn({ project, role: 'analyst' }),
    ];
    const look = (cookie: string) => openStream(portal, `${path}/events`, { cookie });
    const looks = [];
    for (let tab = 0; tab < 9; tab++) looks.push(await look(one.cookie));
    expect(looks.map(({ answer }) => answer.status)).toEqual([...Array.from({ length: 8 }, () => 200), 429]);
    expect((await look(other.cookie)).answer.status).toBe(200);
    const head = await fetch(`${portal.origin}${path}/events`, { method: 'HEAD', headers: { cookie: other.cookie } });
    expect(head.status).toBe(404);
    expect(world.hub.subscribers).toBe(9);
  });

  it('is given sixteen times to one project, and still to others and to administrators', async () => {
    const { world, portal, project, path } = await open();
    const look = async (browser: TestBrowser, at = path) =>
      (await openStream(portal, `${at}/events`, { cookie: browser.cookie })).answer.status;
    const people = await Promise.all(Array.from({ length: 3 }, () => portal.signIn({ project, role: 'analyst' })));
    const statuses = [];
    for (const person of people) for (let tab = 0; tab < 7; tab++) statuses.push(await look(person));
    expect(statuses.filter((status) => status === 200)).toHaveLength(16);
    expect(statuses.slice(16)).toEqual(Array.from({ length: 5 }, () => 429));
    const other = await portal.addProject('Other');
    const theirs = `/projects/${other.id}/environments/production/live`;
    expect(await look(await portal.signIn({ project: other, role: 'analyst' }), theirs)).toBe(200);
    expect(await look(await portal.signIn())).toBe(200);
    expect(world.hub.subscribers).toBe(18);
  });

  it.each([
    [
      'a sign-out',
      async ({ portal, account }: Ended) => {
        for (const { id } of await portal.parts.sessions.list(account)) await portal.parts.sessions.end(id);
      },
    ],
    [
      'a change of role',
      async ({ portal, account, project }: Ended) => {
        await change(portal, account, (standing) => ({
          ...standing,
          roles: [{ projectId: project, role: 'analyst' }],
        }));
      },
    ],
    [
      'a change of credentials whose process died before it had ended the session',
      async ({ portal, account }: Ended) => {
        await change(portal, account, (standing) => ({ ...standing, sessionsFrom: standing.revision + 1 }));
      },
    ],
    [
      'the end of the role',
      async ({ portal, account }: Ended) => {
        await change(portal, account, (standing) => ({ ...standing, roles: [] }));
      },
    ],
    [
      'the end of the account',
      async ({ portal, account }: Ended) => {
        await change(portal, account, (standing) => ({ ...standing, state: 'disabled' }));
      },
    ],
    [
      'the removal of the environment',
      async ({ portal, project }: Ended) => {
        await portal.parts.projects.changedBy(AUTHOR).change((all) => {
          const found = all.find(({ id }) => id === project)!;
          return { ...found, environments: found.environments.filter(({ name }) => name !== 'production') };
        });
      },
    ],
  ])('ends with %s, and says that it has', async (_what, end) => {
    const { world, portal, project, path } = await open();
    const developer = await portal.signIn({ project, role: 'developer' });
    const { seen } = await openStream(portal, `${path}/events`, { cookie: developer.cookie });
    await watched(world);
    const account = (await portal.parts.accounts.all()).find(({ roles }) =>
      roles.some(({ role }) => role === 'developer'),
    )!;
    await end({ portal, account: account.id, project: project.id });
    await until('it has ended', () => seen.isOver);
    expect(seen.text).toContain('"kind":"end"');
    expect(world.hub.subscribers).toBe(0);
  });
});

interface Ended {
  readonly portal: TestPortal;
  readonly account: string;
  readonly project: string;
}

const AUTHOR = { changedBy: 'a test', requestId: 'r' };

async function change(
  portal: TestPortal,
  id: string,
  to: (standing: AccountRecord) => Content<AccountRecord>,
): Promise<void> {
  await portal.parts.accounts.changedBy(AUTHOR).change((all) => to(all.find((each) => each.id === id)!));
}
