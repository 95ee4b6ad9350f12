import { expect, it } from 'vitest';
import { EXIT, UsageError } from '../command.ts';
import { ENVIRONMENT, keyOf, openMemoryFixture } from './test/memory-fixture.ts';

const hexOf = (kind: Parameters<typeof keyOf>[1], id: string) => keyOf(ENVIRONMENT, kind, id).toString('hex');
const PRODUCTION = ['--environment', 'production'];
const subjectArgs = (kind: string, id: string) => [...PRODUCTION, '--kind', kind, '--id', id];
const toRows = (results: readonly string[]) => results.map((line) => JSON.parse(line));
const SUBCOMMANDS = ['resolve', 'members', 'why'];
const BOB = 'bob@example.org';

it.each(SUBCOMMANDS)('identity %s exits with code 3 and recommends a rebuild if Redis has no epoch', async (name) => {
  // The epoch is missing, is lost during the query, or is lost and restored during the query.
  for (const epochs of [[null], ['a', 'a', null], ['a', 'a', 'b']]) {
    const { people, run } = await openMemoryFixture();
    people.readEpoch = async () => epochs.shift() ?? null;
    const { code, results, progress } = await run(name, ...subjectArgs('steam', 'bob'));
    expect({ code, results }).toEqual({ code: EXIT.unreachable, results: [] });
    expect(progress).toContain('npm run rebuild');
  }
});

it.each(SUBCOMMANDS)('identity %s exits with code 2 for invalid arguments, and does not repeat ids', async (name) => {
  const { run } = await openMemoryFixture();
  const key = hexOf('steam', 'bob');
  for (const [args, sentence] of [
    [[], "required option '--environment <name>'"],
    [['--environment', 'moon', '--kind', 'steam', '--id', BOB], '--environment: expected'],
    [['--environment', 'demo moon', '--key', key], '--environment: expected'],
    [PRODUCTION, 'no identity selected'],
    [[...PRODUCTION, '--kind', 'steam', '--id', ' '], 'no identity selected'],
    [[...PRODUCTION, '--id', BOB], '--kind: expected anonymous or passport'],
    [[...PRODUCTION, '--kind', 'facebook', '--id', BOB], 'Allowed choices are anonymous, passport'],
    [[...PRODUCTION, '--key', key, '--id', BOB], 'not both'],
    [[...PRODUCTION, '--key', key, '--kind', 'steam'], 'not both'],
    [[...PRODUCTION, '--key', key.slice(2)], '--key: expected 32 hexadecimal digits'],
    [[...PRODUCTION, '--key', '0'.repeat(32)], '--key: expected 32 hexadecimal digits'],
    [[...PRODUCTION, '--kind', 'steam', '--id', 'bob', BOB], 'too many arguments'],
    [[...subjectArgs('steam', BOB), '--linker-group', 'x'], "unknown option '--linker-group'"],
  ] as const) {
    const { code, progress, results } = await run(name, ...args);
    expect({ args, code, results }).toEqual({ args, code: EXIT.usage, results: [] });
    expect(progress).toContain(sentence);
    expect(progress).not.toContain(BOB);
  }
});

it('identity queries require the pepper only for ids, and name the missing setting', async () => {
  const pepper = () => {
    throw new UsageError('IDENTITY_PEPPER is not set');
  };
  const { run } = await openMemoryFixture({ pepper });
  for (const name of SUBCOMMANDS) {
    expect(await run(name, ...subjectArgs('steam', 'bob'))).toMatchObject({ code: EXIT.usage, results: [] });
    expect((await run(name, ...subjectArgs('steam', 'bob'))).progress).toContain('IDENTITY_PEPPER');
    expect(await run(name, ...PRODUCTION, '--key', hexOf('steam', 'bob'))).toMatchObject({ code: EXIT.ok });
  }
});

it('the identity command does not repeat an unknown subcommand, which may be an id', async () => {
  const { run } = await openMemoryFixture();
  const { code, progress } = await run(BOB, 'resolve');
  expect(code).toBe(EXIT.usage);
  expect(progress).toContain('resolve, members, why, unlink, init, rebuild');
  expect(progress).not.toContain(BOB);
});

it('identity resolve returns the same person for an id and for its key', async () => {
  const { run, identify } = await openMemoryFixture();
  await identify('device', 'steam', 'bob');
  await identify('phone', 'steam', 'bob');
  const [bob] = toRows((await run('resolve', ...subjectArgs('steam', 'bob'), '--json')).results);
  const [phone] = toRows((await run('resolve', ...subjectArgs('anonymous', ' phone '), '--json')).results);
  expect(bob).toMatchObject({ identityKey: hexOf('steam', 'bob'), kind: 'steam', isLinked: true, agrees: true });
  expect(phone).toMatchObject({ identityKey: hexOf('anonymous', 'phone'), personKey: bob.personKey, agrees: true });
  const named = ['--environment', ENVIRONMENT, '--key', hexOf('steam', 'bob').toUpperCase()];
  expect(toRows((await run('resolve', ...named, '--json')).results)).toEqual([{ ...bob, kind: null }]);
  expect((await run('resolve', ...subjectArgs('steam', 'bob'))).text).toMatch(
    new RegExp(`^identity {2}${bob.identityKey} {2}steam, demo-production\nperson {4}${bob.personKey}`),
  );
});

it('identity resolve reports that an identity without links and events is unknown', async () => {
  const { run, identify } = await openMemoryFixture();
  await identify('device', 'steam', 'bob');
  const { code, text } = await run('resolve', ...subjectArgs('steam', 'eve'));
  expect(code).toBe(EXIT.ok);
  expect(text).toContain(`person    ${hexOf('steam', 'eve')}  (same key)\ntables    no row\n`);
  expect(text).toContain('the identity is unknown: it is not linked, and no event contains it.');
  expect(text).not.toContain('No events are stored');
  // An environment without events may be mistyped.
  const mistyped = await openMemoryFixture();
  expect((await mistyped.run('resolve', ...subjectArgs('steam', 'eve'))).text).toContain(
    'No events are stored for demo-production',
  );
});

it('identity resolve reports how the tables differ from Redis, and the probable cause', async () => {
  const { run, identify, stored } = await openMemoryFixture();
  await identify('device', 'steam', 'bob');
  const args = ['resolve', ...subjectArgs('steam', 'bob')];
  const key = hexOf('steam', 'bob');
  const row = stored.persons.get(key)!;
  stored.persons.delete(key);
  expect((await run(...args)).text).toMatch(/DIFFERENT: .* do not contain the link yet: the event writer is lagging/);
  stored.persons.set(key, { ...row, personKey: hexOf('steam', 'another') });
  expect((await run(...args)).text).toMatch(/DIFFERENT: .* a different person: the event writer is lagging/);
  expect(toRows((await run(...args, '--json')).results)).toMatchObject([{ agrees: false, isLinked: true }]);
  stored.persons.set(hexOf('steam', 'erased'), row);
  const unknown = await run('resolve', ...subjectArgs('steam', 'erased'));
  expect(unknown.text).toMatch(
    /DIFFERENT: the identity is linked in the tables, but not in Redis: it was erased, or Redis lost/,
  );
});

it('identity members lists all identities of a person, and raw ids only with --raw', async () => {
  const { run, identify, stored } = await openMemoryFixture();
  await identify('device', 'steam', 'bob');
  await identify('phone', 'steam', 'bob');
  stored.rawIds.set(hexOf('anonymous', 'phone'), 'phone');
  const args = ['members', ...subjectArgs('steam', 'bob')];
  const rows = toRows((await run(...args, '--json')).results);
  expect(rows.map(({ key, kind }) => [kind, key]).sort()).toEqual(
    [
      ['anonymous', hexOf('anonymous', 'device')],
      ['anonymous', hexOf('anonymous', 'phone')],
      ['steam', hexOf('steam', 'bob')],
      ['untyped', hexOf('untyped', 'bob')],
    ].sort(),
  );
  expect(rows.find(({ key }) => key === hexOf('anonymous', 'phone'))).toMatchObject({ linkedAt: 1_790_000_000_001 });
  expect(new Set(rows.map(({ personKey }) => personKey)).size).toBe(1);
  const plain = await run(...args);
  expect(plain.text).not.toMatch(/phone|bob/);
  expect(plain.text.match(/person key$/gm)).toHaveLength(1);
  const raw = toRows((await run(...args, '--raw', '--json')).results);
  expect(raw.map(({ key, id }) => [key, id])).toContainEqual([hexOf('anonymous', 'phone'), 'phone']);
  expect(raw.map(({ key, id }) => [key, id])).toContainEqual([hexOf('steam', 'bob'), null]);
});

it('identity members reports that an identity without links and events is unknown', async () => {
  const { run } = await openMemoryFixture();
  const key = hexOf('email', BOB);
  const { code, text } = await run('members', ...subjectArgs('email', BOB));
  expect(code).toBe(EXIT.ok);
  expect(text).toBe(`${key}  email      not linked  person key\nThe identity is a separate person: it is not linked.`);
  const json = await run('members', ...subjectArgs('email', BOB), '--json');
  expect(toRows(json.results)).toEqual([{ key, kind: 'email', linkedAt: null, personKey: key }]);
});

it('identity why lists applied and refused links of a person in log order', async () => {
  const { run, identify } = await openMemoryFixture();
  await identify('device', 'steam', 'bob');
  await identify('device', 'steam', 'eve');
  await identify('stranger', 'steam', 'zoe');
  await identify('device', 'steam', 'bob');
  const rows = toRows((await run('why', ...subjectArgs('anonymous', 'device'), '--json')).results);
  expect(rows.map(({ place, outcome, reason }) => [place.offset, place.step, outcome, reason])).toEqual([
    [0, 0, 'linked', ''],
    [0, 1, 'linked', ''],
    [1, 1, 'refused', 'shared_device'],
    [3, 0, 'unchanged', ''],
    [3, 1, 'unchanged', ''],
  ]);
  expect(rows[2]).toMatchObject({
    a: { kind: 'anonymous', key: hexOf('anonymous', 'device') },
    b: { kind: 'steam', key: hexOf('steam', 'eve') },
    messageId: '01'.repeat(16),
    traceId: 'e'.repeat(32),
  });
  const { text } = await run('why', ...subjectArgs('anonymous', 'device'));
  const [device, eve] = [hexOf('anonymous', 'device'), hexOf('steam', 'eve')].map((key) => `${key.slice(0, 8)}…`);
  expect(text).toContain(
    `2026-09-21T14:13:20.001Z  identify  refused: An identify message named anonymous id ${device} and steam id ${eve} together. They were not linked: both sides already have a user`,
  );
  expect(text).toContain(`anonymous  ${hexOf('anonymous', 'device')}  <- requested`);
  expect(text).toContain(`message ${'01'.repeat(16)}  trace ${'e'.repeat(32)}  fact 0/3/1 step 1`);
  expect(text).toMatch(/\n5 decisions about a person with 3 identities\.$/);
});

it('identity why shows the refused links of an unlinked identity', async () => {
  const { run, identify } = await openMemoryFixture();
  await identify('device', 'steam', 'undefined');
  const { text } = await run('why', ...subjectArgs('anonymous', 'device'));
  expect(text).toContain('They were not linked: one of the ids is a value that many people share');
  expect(text).toContain('1 decision about an unlinked identity.');
});

it('identity why shows the newest decisions up to --limit, and reports that older decisions were omitted', async () => {
  const { run, identify } = await openMemoryFixture();
  for (const device of ['one', 'two', 'three']) await identify(device, 'untyped', 'bob');
  const args = ['why', ...subjectArgs('untyped', 'bob'), '--limit'];
  const { text } = await run(...args, '2');
  expect(text.match(/fact \S+/g)).toEqual(['fact 0/3/1', 'fact 0/3/2']);
  expect(text).toContain('older decisions were omitted');
  expect((await run(...args, '3')).text).not.toContain('omitted');
  expect((await run(...args, '0')).code).toBe(EXIT.usage);
});

const otherArgs = (kind: string, id: string) => ['--other-kind', kind, '--other-id', id];

it('identity why with two identities of one person shows only the links that joined them', async () => {
  const { run, identify, alias } = await openMemoryFixture();
  await identify('device', 'untyped', 'bob');
  await identify('device', 'untyped', 'bob');
  await identify('aside', 'untyped', 'bob');
  await alias('untyped', 'bob', ['email', BOB]);
  const args = ['why', ...subjectArgs('anonymous', 'device'), ...otherArgs('email', BOB)];
  const { text } = await run(...args);
  expect(text.match(/fact \S+/g)).toEqual(['fact 0/3/0', 'fact 0/3/3']);
  expect(text).toContain('The identities belong to one person, connected by the 2 links above');
  const json = await run(...args, '--json');
  expect(toRows(json.results).map(({ place }) => place.offset)).toEqual([0, 3]);
  expect(json.progress).toContain('The identities belong to one person');
});

it('identity why with two identities reports links that the tables do not contain yet', async () => {
  const { run, identify, stored } = await openMemoryFixture();
  await identify('device', 'untyped', 'bob');
  stored.links.length = 0;
  const { text } = await run('why', ...subjectArgs('anonymous', 'device'), ...otherArgs('untyped', 'bob'));
  expect(text).toContain('The identities belong to one person, but the tables do not contain the links');
});

it('identity why with identities of two persons lists all links requested between the persons', async () => {
  const { run, identify, alias } = await openMemoryFixture();
  await alias('passport', 'p1', ['email', BOB]);
  await alias('passport', 'p2', ['custom', 'c2']);
  await alias('email', BOB, ['custom', 'c2']);
  await identify('device', 'untyped', 'zoe');
  const { text } = await run('why', ...subjectArgs('passport', 'p1'), ...otherArgs('passport', 'p2'));
  expect(text.match(/fact \S+/g)).toEqual(['fact 0/3/2']);
  expect(text).toContain('not linked: an alias may not join two known users');
  expect(text).toContain('The identities belong to two persons.');
  const strangers = await run('why', ...subjectArgs('passport', 'p1'), ...otherArgs('untyped', 'zoe'));
  expect(strangers.text).toContain('two persons: no message has requested a link between the persons.');
});

it('identity why refuses an incomplete second identity, and two equal identities', async () => {
  const { run } = await openMemoryFixture();
  const args = ['why', ...subjectArgs('steam', 'bob')];
  expect((await run(...args, '--other-kind', 'steam')).progress).toContain('no identity selected: pass --other-kind');
  expect((await run(...args, ...otherArgs('steam', ' bob'))).progress).toContain('the two identities are the same');
  expect((await run(...args, '--other-key', hexOf('steam', 'bob'))).code).toBe(EXIT.usage);
});
