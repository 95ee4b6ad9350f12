import type { AuditEntry } from '@playline/access-keys';
import { erasureRequestCodec, FRAME_BYTES, type IdentityKind, identityLinkCodec, TOPICS } from '@playline/contracts';
import { DEFAULT_LIMITS, SUSPECT_LIMIT, USER_KINDS } from '@playline/people';
import { type MemoryPeople, openMemoryPeople } from '@playline/people/memory';
import { createLogger } from '@playline/runtime';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { LinkDecision } from '../../reads/index.ts';
import { createMemoryReads } from '../../test/memory-reads.ts';
import { createMemoryPeople, keyOf, openPortal, type TestPortal } from '../../test/open-portal.ts';

const PLAYER = 'player-of-the-game';
const ACCOUNT = 'steam-account-7';

const ids: Record<string, Record<string, string>> = {};
const links: Record<string, LinkDecision[]> = {};
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
    reads: createMemoryReads({ ids, links }),
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
  const row: LinkDecision = {
    receivedMs: 1_000,
    link: 'identify',
    outcome: 'linked',
    reason: '',
    movedCount: 2,
    a: { identityId: aHex, kind: 'anonymous' },
    b: { identityId: bHex, kind: 'steam' },
    messageId: '11111111-1111-4111-8111-111111111111',
    traceId: 'a'.repeat(32),
  };
  const otherIdentity = { identityId: 'f'.repeat(32), kind: 'anonymous' };
  const refused = { ...row, a: otherIdentity, outcome: 'refused', reason: 'shared_device', traceId: 'b'.repeat(32) };
  links[environmentId] = [refused, row];
}

async function openProject(role: 'owner' | 'developer' | 'analyst') {
  const project = await portal.addProject('Game');
  const environment = project.environments.find(({ name }) => name === 'development')!;
  await link(environment.id);
  const path = `/projects/${project.id}/environments/development/people`;
  return { environment, path, browser: await portal.signIn({ project, role }) };
}
const toSearch = (kind: IdentityKind | 'key', id: string) => ({ kind, id });
type Opened = Awaited<ReturnType<typeof openProject>>;

/** Finds the person and submits a form on the page that shows the person. */
async function submitFound({ browser, path }: Opened, action: string, values: Record<string, string>) {
  const { text } = await browser.submit(path, 'search', toSearch('anonymous', PLAYER));
  const form = browser.formOf(text, action);
  if (form === null) throw new Error(`no form ${action}`);
  entries.length = 0;
  for (const [name, value] of Object.entries(values)) form.fields.set(name, value);
  return browser.post(form.action, form.fields);
}

it('the person search shows identities, linking messages and refused links', async () => {
  const { browser, path, environment } = await openProject('developer');
  const { status, text } = await browser.submit(path, 'search', toSearch('steam', ACCOUNT));
  expect(status).toBe(200);
  for (const kind of ['anonymous', 'steam'] as const)
    expect(text).toContain(keyOf(environment.id, kind, kind === 'steam' ? ACCOUNT : PLAYER).toString('hex'));
  for (const expected of ['11111111-1111-4111-8111-111111111111', 'a'.repeat(32), 'b'.repeat(32), ACCOUNT])
    expect(text).toContain(expected);
});

it('the person search finds a person by identity key and reports an unknown id', async () => {
  const { browser, path, environment } = await openProject('developer');
  const key = keyOf(environment.id, 'steam', ACCOUNT).toString('hex');
  const byKey = (await browser.submit(path, 'search', toSearch('key', key))).text;
  expect([byKey.includes(ACCOUNT), byKey.includes('No message contains this id')]).toEqual([true, false]);
  const { text } = await browser.submit(path, 'search', toSearch('untyped', 'unknown'));
  expect(text).toContain('No message contains this id');
  for (const invalid of ['', '0'.repeat(32), 'xyz'])
    expect([invalid, (await browser.submit(path, 'search', toSearch('key', invalid))).status]).toEqual([invalid, 400]);
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

it('the audit log records the id type of a person search, but not the id', async () => {
  const { browser, path, environment } = await openProject('developer');
  await browser.submit(path, 'search', toSearch('steam', ACCOUNT));
  const detail = { page: 'people', by: 'steam' };
  expect(entries).toMatchObject([{ action: 'person.find', environmentId: environment.id, detail }]);
  expect(JSON.stringify(entries)).not.toContain(ACCOUNT);
});

it('the person search does not find people in other projects', async () => {
  const [ownProject, otherProject] = [await openProject('owner'), await openProject('owner')];
  const key = keyOf(otherProject.environment.id, 'steam', ACCOUNT).toString('hex');
  const { text } = await ownProject.browser.submit(ownProject.path, 'search', toSearch('key', key));
  expect(text).toContain('No message contains this id');
  expect(text).not.toContain(ACCOUNT);
});

it('an erasure request publishes the record that a gateway would publish, and is audited without the id', async () => {
  const opened = await openProject('owner');
  const response = await submitFound(opened, 'erase', { confirm: PLAYER });
  const id = /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/.exec(response.text)![0];
  expect(response.text).toContain(`${opened.path.replace(/people$/, 'erasures')}"`);
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

it('an erasure by user id covers the id under every identity type and without a type', async () => {
  const opened = await openProject('owner');
  const { text } = await opened.browser.submit(opened.path, 'search', toSearch('steam', ACCOUNT));
  const form = opened.browser.formOf(text, 'erase')!;
  form.fields.set('confirm', ACCOUNT);
  await opened.browser.post(form.action, form.fields);
  const { subjectKeys } = erasureRequestCodec.decode(sent[0]!.value!.subarray(FRAME_BYTES));
  expect(subjectKeys).toEqual(USER_KINDS.map((kind) => keyOf(opened.environment.id, kind, ACCOUNT)));
});

it('an erasure without a correct confirmation is refused, and the page shows the person again', async () => {
  const opened = await openProject('owner');
  const response = await submitFound(opened, 'erase', { confirm: 'another' });
  expect([response.status, sent.length, entries.length]).toEqual([400, 0, 0]);
  expect(response.text).toContain('Nothing was erased');
  expect(response.text).toContain('Erase this person');
});

it('a split is requested for the chosen identities and shown as requested until it is applied', async () => {
  const opened = await openProject('owner');
  const member = keyOf(opened.environment.id, 'steam', ACCOUNT).toString('hex');
  const response = await submitFound(opened, 'unlink', { member });
  expect(response.text).toContain('Split requested');
  expect(sent.map(({ topic }) => topic)).toEqual([TOPICS.identityLinks.name]);
  expect(entries).toMatchObject([{ action: 'identity.unlink', detail: { split: 1, stayed: 1 } }]);
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
  const response = await submitFound(opened, 'unlink', { member });
  expect([response.status, response.text.includes('Person split')]).toEqual([200, true]);
  const { text } = await opened.browser.submit(opened.path, 'search', toSearch('anonymous', PLAYER));
  expect(text).toContain('<dt>Identities</dt><dd>1');
});

it('a split is refused if no identity is selected or if an identity belongs to another person', async () => {
  const opened = await openProject('owner');
  for (const member of ['', 'e'.repeat(32)]) expect((await submitFound(opened, 'unlink', { member })).status).toBe(400);
  expect(sent).toEqual([]);
});

it('player ids never appear in a URL, a header or the log', async () => {
  const opened = await openProject('owner');
  const search = await opened.browser.submit(opened.path, 'search', toSearch('anonymous', PLAYER));
  const erase = await submitFound(opened, 'erase', { confirm: PLAYER });
  people.deleteEpoch();
  const failed = await opened.browser.submit(opened.path, 'search', toSearch('anonymous', PLAYER));
  await people.rebuild.mintEpoch();
  expect(failed.status).toBe(500);
  expect(lines.length).toBeGreaterThan(0);
  const written = [...lines, ...[search, erase, failed].map(({ headers }) => JSON.stringify([...headers]))].join('\n');
  for (const id of [PLAYER, ACCOUNT]) expect(written).not.toContain(id);
  const addresses = [search, erase].flatMap(({ text }) => [...text.matchAll(/(?:href|action|src)="([^"]*)"/g)]);
  expect(addresses.map(([, to]) => to).join('\n')).not.toMatch(/player-of|steam-account/);
});
