import type { AuditEntry } from '@playline/access-keys';
import { erasureRequestCodec, FRAME_BYTES, type IdentityKind, identityLinkCodec, TOPICS } from '@playline/contracts';
import { DEFAULT_LIMITS, SUSPECT_LIMIT, USER_KINDS } from '@playline/people';
import { type MemoryPeople, openMemoryPeople } from '@playline/people/memory';
import { createLogger } from '@playline/runtime';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { TimelineEntry } from '../../reads/index.ts';
import { createMemoryReads } from '../../test/memory-reads.ts';
import { createMemoryPeople, keyOf, openPortal, type TestPortal } from '../../test/open-portal.ts';

const PLAYER = 'player-of-the-game';
const ACCOUNT = 'steam-account-7';
/** The number has more digits than a JavaScript number can hold. */
const DETAIL = '{"properties":{"level":12,"big":12345678901234567890}}';

const ids: Record<string, Record<string, string>> = {};
const timelines: Record<string, TimelineEntry[]> = {};
const entries: AuditEntry[] = [];
const lines: string[] = [];
const sent: { topic: string; value: Buffer | null }[] = [];
/** Applies a requested split as the linker does. If null, no split is applied. */
let decide: ((value: Buffer) => Promise<void>) | null = null;
let people: MemoryPeople;
let portal: TestPortal;

beforeAll(async () => {
  people = openMemoryPeople({ ...DEFAULT_LIMITS, suspectLimit: SUSPECT_LIMIT });
  await people.rebuild.mintEpoch();
  const sendForOffset = async (record: { topic: string; value: Buffer | null }) => {
    sent.push(record);
    await decide?.(record.value!);
    return { partition: 0, offset: 0, loggedAtMs: null };
  };
  portal = await openPortal({
    // The split is applied while the request is being sent, or never.
    people: createMemoryPeople({ people, producer: { sendForOffset }, decisionMaxMs: 0 }),
    reads: createMemoryReads({ ids, timelines }),
    logger: createLogger({ service: 'portal', level: 'debug' }, { write: (line: string) => lines.push(line) }),
    audit: { append: async (entry) => void entries.push(entry) },
  });
});
beforeEach(() => {
  entries.length = 0;
  sent.length = 0;
  decide = null;
});
afterAll(() => portal.close());

/** Links two ids as the linker does, and adds their ClickHouse rows. */
async function link(environmentId: string): Promise<void> {
  const [a, b] = [keyOf(environmentId, 'anonymous', PLAYER), keyOf(environmentId, 'steam', ACCOUNT)];
  const source = { generation: 0, partition: 0 };
  const after = await people.graph.lastApplied(source);
  const keys = { aKey: a, aKind: 'anonymous', bKey: b, bKind: 'steam' } as const;
  const step = { link: 'identify', blocked: false, otherKeys: [], ...keys } as const;
  const fact = { environmentId, offset: after + 1, receivedAt: 1_000, eventTime: 1_000, steps: [step] };
  await people.graph.apply({ ...source, after, through: after + 1, facts: [fact] });
  const [aHex, bHex] = [a.toString('hex'), b.toString('hex')];
  ids[environmentId] = { [aHex]: PLAYER, [bHex]: ACCOUNT };
  const link: TimelineEntry = {
    entry: 'link',
    happenedMs: 1_000,
    id: '1'.repeat(32),
    what: 'identify',
    name: 'linked',
    origin: '',
    identityId: aHex,
    kind: 'anonymous',
    otherId: bHex,
    otherKind: 'steam',
    messageId: '11111111-1111-4111-8111-111111111111',
    traceId: 'a'.repeat(32),
    detail: '',
  };
  const refused = { ...link, id: '2'.repeat(32), otherId: 'f'.repeat(32), name: 'refused', origin: 'shared_device' };
  const event = { ...link, entry: 'event', what: 'track', name: 'jump', origin: 'web', otherId: '', detail: DETAIL };
  const events = ['3', '4', '5'].map((id) => ({ ...event, id: id.repeat(32), happenedMs: 2_000 }));
  const consent = { ...link, entry: 'consent', id: '6'.repeat(32), what: 'full', name: 'current', otherId: '' };
  timelines[environmentId] = [link, refused, ...events, consent];
}

async function openProject(role: 'owner' | 'developer' | 'analyst') {
  const project = await portal.addProject('Game');
  const environment = project.environments.find(({ name }) => name === 'development')!;
  await link(environment.id);
  const path = `/projects/${project.id}/environments/development/people`;
  return { environment, path, browser: await portal.signIn({ project, role }) };
}
const toSearch = (kind: IdentityKind | 'key' | 'any', id: string) => ({ kind, id });
type Opened = Awaited<ReturnType<typeof openProject>>;

/** Searches for an id and follows the redirect to the page of the person. */
async function find({ browser, path }: Opened, kind: IdentityKind | 'key' | 'any', id: string) {
  const response = await browser.submit(path, 'search', toSearch(kind, id));
  const location = response.headers.get('location');
  return location === null ? { path, response } : { path: location, response: await browser.get(location) };
}

/** Finds the person and submits a form on the page with this query. */
async function submitFound(opened: Opened, action: string, values: Record<string, string>, query = '') {
  const { browser } = opened;
  const found = await find(opened, 'anonymous', PLAYER);
  const { text } = await browser.get(found.path + query);
  const form = browser.formOf(text, action);
  if (form === null) throw new Error(`no form ${action}`);
  entries.length = 0;
  for (const [name, value] of Object.entries(values)) form.fields.set(name, value);
  return browser.post(form.action, form.fields);
}
const erase = (opened: Opened, confirm: string) => submitFound(opened, 'erase', { confirm }, '&confirm=erase');

it.each(['any', 'steam'] as const)(
  'a search by id with the type %s opens the person with identities, reasons and refused links',
  async (kind) => {
    const opened = await openProject('developer');
    const { path, response } = await find(opened, kind, ACCOUNT);
    expect(path).toContain(`person=${keyOf(opened.environment.id, 'steam', ACCOUNT).toString('hex')}`);
    const { status, text } = response;
    expect(status).toBe(200);
    for (const each of ['anonymous', 'steam'] as const)
      expect(text).toContain(keyOf(opened.environment.id, each, each === 'steam' ? ACCOUNT : PLAYER).toString('hex'));
    for (const expected of [
      'An identify message named anonymous id “player-of-the-game” and steam id “steam-account-7” together, so they belong to one person.',
      'They were not linked: both sides already have a user, so several people share the device.',
      '11111111-1111-4111-8111-111111111111',
      '2 identities',
    ])
      expect(text).toContain(expected);
    expect(text).not.toMatch(/\b1 identities|<title>[^<]*steam-account/);
  },
);

it('the person search finds a person by identity key and rejects an invalid key', async () => {
  const opened = await openProject('developer');
  const key = keyOf(opened.environment.id, 'steam', ACCOUNT).toString('hex');
  expect((await find(opened, 'key', key)).response.text).toContain(ACCOUNT);
  for (const invalid of ['', '0'.repeat(32), 'xyz'])
    expect([invalid, (await find(opened, 'key', invalid)).response.status]).toEqual([invalid, 400]);
});

it('an id without links is shown with its type, although it was found by key', async () => {
  const opened = await openProject('developer');
  const key = keyOf(opened.environment.id, 'epic', 'alone').toString('hex');
  ids[opened.environment.id] = { [key]: 'alone' };
  const { text } = (await find(opened, 'key', key)).response;
  for (const expected of ['<span class="tag">epic</span>', 'No link to another id is recorded', '1 identity<'])
    expect(text).toContain(expected);
});

it('an id that two people use under different types leads to a choice between them', async () => {
  const opened = await openProject('developer');
  const { id } = opened.environment;
  const other = keyOf(id, 'epic', ACCOUNT).toString('hex');
  ids[id] = { ...ids[id], [other]: ACCOUNT };
  const { response } = await find(opened, 'any', ACCOUNT);
  expect([response.status, response.text.includes('2 people have this id')]).toEqual([200, true]);
  for (const key of [other, keyOf(id, 'steam', ACCOUNT).toString('hex')])
    expect(response.text).toContain(`person=${key}`);
});

it('an unknown id leads to no person, with ids of another type, case or spacing, and no open erase form', async () => {
  const opened = await openProject('owner');
  const { id } = opened.environment;
  const near = [
    ['steam', ACCOUNT.toUpperCase()],
    ['email', 'Pat@Game.Example'],
    ['custom', 'spaced '],
  ] as const;
  const known = near.map(([kind, text]) => [keyOf(id, kind, text).toString('hex'), text]);
  ids[id] = Object.fromEntries(known);
  for (const [typed, at] of [
    [ACCOUNT.toUpperCase(), 0],
    ['pat@game.example', 1],
    ['spaced', 2],
  ] as const) {
    const { text } = (await find(opened, 'anonymous', typed)).response;
    expect(text).toContain('No person has this id');
    expect(text).toContain(`person=${known[at]![0]}`);
    expect(text).not.toMatch(/Erase person…|<details[^>]* open/);
  }
  const { text } = (await find(opened, 'untyped', 'someone else')).response;
  expect(text).not.toContain('Similar ids');
});

it('the people page lists ids that are held because they have linked too many anonymous ids', async () => {
  const { browser, path, environment } = await openProject('developer');
  expect((await browser.get(path)).text).not.toContain('Held ids');
  const source = { generation: 0, partition: 0 };
  const after = await people.graph.lastApplied(source);
  const key = keyOf(environment.id, 'untyped', 'shared');
  const facts = Array.from({ length: SUSPECT_LIMIT.anonymousIdsMax + 1 }, (_, index) => {
    const aKey = keyOf(environment.id, 'anonymous', `device-${index}`);
    const keys = { aKey, aKind: 'anonymous', bKey: key, bKind: 'untyped' } as const;
    const step = { link: 'identify', blocked: false, otherKeys: [], ...keys } as const;
    const offset = after + 1 + index;
    return { environmentId: environment.id, offset, receivedAt: 1_000, eventTime: 1_000, steps: [step] };
  });
  await people.graph.apply({ ...source, after, through: facts.at(-1)!.offset, facts });
  const { text } = await browser.get(path);
  for (const shown of ['Held ids', key.toString('hex'), 'npm run identity -- suspects']) expect(text).toContain(shown);
});

it('the audit log records the id type of a person search and who was viewed, but no id', async () => {
  const opened = await openProject('developer');
  const { id: environmentId } = opened.environment;
  await find(opened, 'steam', ACCOUNT);
  const object = keyOf(environmentId, 'steam', ACCOUNT).toString('hex');
  expect(entries).toMatchObject([
    { action: 'person.find', environmentId, detail: { page: 'people', by: 'steam' } },
    { action: 'person.view', environmentId, object },
  ]);
  expect(JSON.stringify(entries)).not.toContain(ACCOUNT);
});

it('the person search does not find people in other projects', async () => {
  const [ownProject, otherProject] = [await openProject('owner'), await openProject('owner')];
  const key = keyOf(otherProject.environment.id, 'steam', ACCOUNT).toString('hex');
  const { text } = await ownProject.browser.get(`${ownProject.path}?person=${key}`);
  for (const page of [text, (await find(ownProject, 'key', key)).response.text]) {
    expect(page).toContain('No person has this id');
    expect(page).not.toContain(ACCOUNT);
  }
});

it('the timeline shows the part that was chosen and continues after the last entry of a page', async () => {
  const opened = await openProject('developer');
  const { path } = await find(opened, 'steam', ACCOUNT);
  const read = async (query: string) => (await opened.browser.get(path + query)).text;
  const count = (text: string) => [text.split('>jump</b>').length - 1, text.split('consent changed').length - 1];
  expect(count(await read(''))).toEqual([3, 1]);
  expect(count(await read('&show=events'))).toEqual([3, 0]);
  expect(count(await read('&show=consent'))).toEqual([0, 1]);
  expect(count(await read(`&after=2000.${'4'.repeat(32)}`))).toEqual([1, 1]);
  expect(count(await read(`&after=2000.${'3'.repeat(32)}`))).toEqual([0, 1]);
  expect(await read('')).toContain('12345678901234567890');
});

it('the export contains every entry of the person with all digits, and is audited', async () => {
  const opened = await openProject('developer');
  const { path } = await find(opened, 'steam', ACCOUNT);
  entries.length = 0;
  const { text, headers } = await opened.browser.get(`${path}&as=csv`);
  expect(headers.get('content-disposition')).toMatch(/person-[0-9a-f]{32}\.csv/);
  const kinds = [...text.matchAll(/Z","(\w+)"/g)].map(([, kind]) => kind).sort();
  expect(kinds).toEqual(['consent', 'event', 'event', 'event', 'link', 'link']);
  expect(text).toContain('12345678901234567890');
  expect(entries).toMatchObject([{ action: 'person.save' }]);
});

it('an erasure request publishes the record that a gateway would publish, and is audited without the id', async () => {
  const opened = await openProject('owner');
  const { status, headers } = await erase(opened, PLAYER);
  const id = /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/.exec(headers.get('location')!)![0];
  expect([status, headers.get('location')]).toEqual([303, opened.path.replace(/people$/, `erasures/${id}`)]);
  const [record] = sent;
  expect([sent.length, record!.topic]).toEqual([1, 'audience.erasures.v1']);
  const request = erasureRequestCodec.decode(record!.value!.subarray(FRAME_BYTES));
  expect(request.erasureId.toString('hex')).toBe(id.replaceAll('-', ''));
  expect(request).toMatchObject({
    environmentId: opened.environment.id,
    subjectKeys: [keyOf(opened.environment.id, 'anonymous', PLAYER)],
    memberKeys: [keyOf(opened.environment.id, 'steam', ACCOUNT)],
  });
  expect(people.holdOf(opened.environment.id, request.subjectKeys[0]!)).toBe(request.cutoffAt);
  expect(entries).toMatchObject([{ action: 'erasure.request', object: id, environmentId: opened.environment.id }]);
  expect(JSON.stringify(entries)).not.toContain(PLAYER);
});

it('an erasure confirmed with a user id covers the id under every identity type and without a type', async () => {
  const opened = await openProject('owner');
  await erase(opened, ACCOUNT);
  const { subjectKeys } = erasureRequestCodec.decode(sent[0]!.value!.subarray(FRAME_BYTES));
  expect(subjectKeys).toEqual(USER_KINDS.map((kind) => keyOf(opened.environment.id, kind, ACCOUNT)));
});

it('an id that no message contains can be erased after it was typed twice', async () => {
  const opened = await openProject('owner');
  const { response } = await find(opened, 'any', 'unknown@game.example');
  const { action, fields } = opened.browser.formOf(response.text, 'erase')!;
  fields.set('confirm', 'unknown');
  const refused = await opened.browser.post(action, fields);
  expect([refused.status, refused.text.includes('Nothing was erased'), sent.length]).toEqual([400, true, 0]);
  const form = opened.browser.formOf(refused.text, 'erase')!;
  form.fields.set('confirm', 'unknown@game.example');
  expect((await opened.browser.post(form.action, form.fields)).status).toBe(303);
  expect(sent).toHaveLength(1);
});

it('an erasure without one of the ids of the person as confirmation is refused, and the page shows the form again', async () => {
  const opened = await openProject('owner');
  const response = await erase(opened, 'another');
  expect([response.status, sent.length, entries.map(({ action }) => action)]).toEqual([400, 0, ['person.view']]);
  expect(response.text).toContain('Nothing was erased');
  expect(opened.browser.formOf(response.text, 'erase')).not.toBeNull();
});

it('a split is requested for the chosen identities and shown as requested until it is applied', async () => {
  const opened = await openProject('owner');
  const member = keyOf(opened.environment.id, 'steam', ACCOUNT).toString('hex');
  const { headers } = await submitFound(opened, 'unlink', { member });
  expect(sent.map(({ topic }) => topic)).toEqual([TOPICS.identityLinks.name]);
  expect(entries).toMatchObject([{ action: 'identity.unlink', detail: { split: 1, stayed: 1 } }]);
  expect((await opened.browser.get(headers.get('location')!)).text).toContain('Split requested');
});

it('an applied split is shown as completed, and the person then has one identity', async () => {
  const opened = await openProject('owner');
  const { id: environmentId } = opened.environment;
  decide = async (value) => {
    const source = { generation: 0, partition: 0 };
    const after = await people.graph.lastApplied(source);
    const record = identityLinkCodec.decode(value.subarray(FRAME_BYTES));
    const { unlink, receivedAt, eventTime } = record;
    const fact = { environmentId, offset: after + 1, receivedAt, eventTime, steps: [], unlink };
    await people.graph.apply({ ...source, after, through: after + 1, facts: [fact] });
  };
  const member = keyOf(environmentId, 'steam', ACCOUNT).toString('hex');
  const { headers } = await submitFound(opened, 'unlink', { member });
  const { text } = await opened.browser.get(headers.get('location')!);
  for (const expected of ['The identities now belong to two persons.', '1 identity<']) expect(text).toContain(expected);
});

it('a split is refused if no identity is selected or if an identity belongs to another person', async () => {
  const opened = await openProject('owner');
  for (const member of ['', 'e'.repeat(32)]) expect((await submitFound(opened, 'unlink', { member })).status).toBe(400);
  expect(sent).toEqual([]);
});

it('player ids never appear in a URL, a header, a title or the log', async () => {
  const opened = await openProject('owner');
  const { response: search } = await find(opened, 'anonymous', PLAYER);
  const redirected = await opened.browser.submit(opened.path, 'search', toSearch('anonymous', PLAYER));
  const erased = await erase(opened, PLAYER);
  people.deleteEpoch();
  const failed = await opened.browser.submit(opened.path, 'search', toSearch('anonymous', PLAYER));
  await people.rebuild.mintEpoch();
  expect(failed.status).toBe(500);
  expect(lines.length).toBeGreaterThan(0);
  const responses = [search, redirected, erased, failed];
  const written = [...lines, ...responses.map(({ headers }) => JSON.stringify([...headers]))].join('\n');
  for (const id of [PLAYER, ACCOUNT]) expect(written).not.toContain(id);
  const addresses = responses.flatMap(({ text }) => [...text.matchAll(/(?:href|action|src)="([^"]*)"|<title>(.*?)</g)]);
  expect(addresses.join('\n')).not.toMatch(/player-of|steam-account/);
});
