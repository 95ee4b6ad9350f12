import type { IdentityDecisionRecord } from '@playline/contracts';
import { SUSPECT_LIMIT } from '@playline/people';
import { expect, it } from 'vitest';
import { EXIT } from '../command.ts';
import { ENVIRONMENT, keyOf, openMemoryFixture } from './test/memory-fixture.ts';

const hexOf = (kind: Parameters<typeof keyOf>[1], id: string) => keyOf(ENVIRONMENT, kind, id).toString('hex');
const PRODUCTION = ['--environment', 'production'];
const subjectArgs = (kind: string, id: string) => [...PRODUCTION, '--kind', kind, '--id', id];
const BOB = 'bob@example.org';

/** Opens a fixture with one person: device, steam:bob, untyped:bob and, wrongly merged, email:bob. */
async function openMergedPerson() {
  const fixture = await openMemoryFixture();
  await fixture.identify('device', 'steam', 'bob');
  await fixture.alias('steam', 'bob', ['email', BOB]);
  return fixture;
}

const membersOf = async ({ run }: Awaited<ReturnType<typeof openMergedPerson>>, kind: string, id: string) =>
  (await run('members', ...subjectArgs(kind, id), '--json')).results.map((line) => JSON.parse(line));

it('identity unlink shows a plan, prompts for confirmation, and splits the person', async () => {
  const fixture = await openMergedPerson();
  const { code, results } = await fixture.runWithAnswer('yes')('unlink', ...subjectArgs('email', BOB));
  expect(code).toBe(EXIT.ok);
  expect(results.filter((line) => line.includes(' moves '))).toEqual([expect.stringContaining(hexOf('email', BOB))]);
  expect(results.filter((line) => line.includes(' stays '))).toHaveLength(3);
  expect(results.join()).toContain('Link fact 0/3/2 was applied');
  expect(await membersOf(fixture, 'email', BOB)).toMatchObject([{ key: hexOf('email', BOB) }]);
  const stayed = (await membersOf(fixture, 'steam', 'bob')).map(({ key }) => key);
  expect(stayed.sort()).toEqual([hexOf('anonymous', 'device'), hexOf('steam', 'bob'), hexOf('untyped', 'bob')].sort());
  expect((await fixture.run('resolve', ...subjectArgs('email', BOB), '--json')).text).toContain('"agrees":true');
  // The log never contains raw ids.
  expect(JSON.stringify(fixture.log.published)).not.toContain('bob');
});

it('identity unlink accepts several identities by kind and id or by key, and ignores duplicates', async () => {
  for (const named of [
    ['--kind', 'steam', '--id', 'bob', '--kind', 'untyped', '--id', 'bob'],
    ['--kind', 'steam', '--id', 'bob', '--id', ' bob ', '--key', hexOf('untyped', 'bob')],
    ['--key', hexOf('steam', 'bob'), '--key', hexOf('untyped', 'bob')],
  ]) {
    const fixture = await openMergedPerson();
    const { code, results } = await fixture.run('unlink', ...PRODUCTION, ...named, '--yes', '--json');
    const outcome = JSON.parse(results.join());
    expect({ code, outcome }).toMatchObject({ code: EXIT.ok, outcome: { outcome: 'unlinked', place: '0/3/2' } });
    expect(outcome.split.keys).toEqual([hexOf('steam', 'bob'), hexOf('untyped', 'bob')].sort());
    expect(outcome.stayed.keys).toEqual([hexOf('anonymous', 'device'), hexOf('email', BOB)].sort());
  }
});

it.each([
  ['the answer no', 'no', EXIT.failed],
  ['no terminal', undefined, EXIT.usage],
])('identity unlink does not publish an unlink without confirmation: %s', async (_, answer, expected) => {
  const fixture = await openMergedPerson();
  const run = answer === undefined ? fixture.run : fixture.runWithAnswer(answer);
  const { code, progress } = await run('unlink', ...subjectArgs('email', BOB));
  expect(code).toBe(expected);
  expect(progress).toMatch(/nothing was changed|--yes/);
  expect(fixture.log.published).toEqual([]);
});

it.each([
  ['of two persons', [...subjectArgs('email', BOB), '--kind', 'steam', '--id', 'zoe'], 'do not belong to one person'],
  ['that are not linked', subjectArgs('steam', 'unknown'), 'already a separate person'],
  [
    'that are the whole person',
    [...PRODUCTION, '--kind', 'steam', '--id', 'zoe', '--kind', 'untyped', '--id', 'zoe'],
    'nothing to split',
  ],
])('identity unlink refuses identities %s, and does not publish an unlink', async (_, named, message) => {
  const fixture = await openMergedPerson();
  await fixture.alias('steam', 'zoe', ['untyped', 'zoe']);
  const { code, progress, results } = await fixture.run('unlink', ...named, '--yes');
  expect({ code, results }).toEqual({ code: EXIT.failed, results: [] });
  expect(progress).toContain(message);
  expect(fixture.log.published).toEqual([]);
});

it('identity unlink exits with code 2 for invalid arguments, and does not repeat ids', async () => {
  const { run } = await openMergedPerson();
  for (const args of [
    PRODUCTION,
    [...PRODUCTION, '--kind', 'steam'],
    [...PRODUCTION, '--id', BOB],
    [...PRODUCTION, '--kind', 'steam', '--kind', 'epic', '--id', BOB],
    [...subjectArgs('facebook', BOB)],
    [...subjectArgs('email', BOB), '--key', 'x'],
    [...subjectArgs('email', BOB), BOB, BOB],
    [...subjectArgs('email', BOB), '--wait-seconds', '0'],
  ]) {
    const { code, progress } = await run('unlink', ...args, '--yes');
    expect({ args, code }).toEqual({ args, code: EXIT.usage });
    expect(progress).not.toContain(BOB);
  }
});

it.each([
  [
    'a person who changed since the plan',
    { outcome: 'refused', reason: 'not_one_person' },
    'do not belong to one person',
  ],
  ['a person who was erased since the plan', { outcome: 'refused', reason: 'fenced' }, 'one of the ids was erased'],
  ['a person who is already split', { outcome: 'unchanged', reason: '' }, 'nothing to split'],
  [
    'persons because their release does not support unlinking',
    { outcome: 'unchanged', reason: '', unlink: null },
    'a release that does not support unlinking',
  ],
] as const)('identity unlink exits with code 1 if the linkers do not split %s', async (_, changes, message) => {
  const fixture = await openMergedPerson();
  const none = { stayedRoot: Buffer.alloc(16), stayed: [] };
  const { toDecision } = fixture.log;
  fixture.log.toDecision = async (fact) =>
    ({ ...(await toDecision(fact))!, moved: [], unlink: none, ...changes }) as IdentityDecisionRecord;
  const { code, progress } = await fixture.run('unlink', ...subjectArgs('email', BOB), '--yes');
  expect(code).toBe(EXIT.failed);
  expect(progress).toContain('no identities were split');
  expect(progress).toContain(message);
});

it('identity unlink exits with code 3 if the linkers time out, and reports that the request will be decided later', async () => {
  const fixture = await openMergedPerson();
  fixture.log.toDecision = async () => null;
  const { code, progress } = await fixture.run('unlink', ...subjectArgs('email', BOB), '--yes', '--wait-seconds', '1');
  expect(code).toBe(EXIT.unreachable);
  expect(progress).toContain('will be decided');
  expect(fixture.log.published).toHaveLength(1);
});

it('identity why shows a split and later refused links, and omits undone links from the chain', async () => {
  const fixture = await openMergedPerson();
  await fixture.run('unlink', ...subjectArgs('email', BOB), '--yes');
  await fixture.alias('steam', 'bob', ['email', BOB]);
  const printed = await fixture.run('why', ...subjectArgs('email', BOB));
  expect(printed.text).toMatch(
    /unlink {2}unlinked: An operator requested to split .*, so they belong to two persons\./,
  );
  expect(printed.text).toContain('They were not linked: an operator split the two ids');
  const other = ['--other-kind', 'email', '--other-id', BOB];
  const afterSplit = await fixture.run('why', ...subjectArgs('anonymous', 'device'), ...other);
  expect(afterSplit.text).toContain('The identities belong to two persons.');
  // After later messages merge the persons again, the chain does not contain links from before the split.
  const later = Date.now() + 60_000;
  await fixture.alias('epic', 'kim', ['steam', 'bob', later]);
  await fixture.alias('epic', 'kim', ['email', BOB, later]);
  const chain = await fixture.run('why', ...subjectArgs('steam', 'bob'), ...other, '--json');
  expect(chain.results.map((line) => JSON.parse(line).a.key)).toEqual([hexOf('epic', 'kim'), hexOf('epic', 'kim')]);
});

const NAMED = [...PRODUCTION, '--kind', 'untyped', '--id', 'shared'];
const KEY = keyOf(ENVIRONMENT, 'untyped', 'shared').toString('hex');

async function openSuspectFixture() {
  const fixture = await openMemoryFixture();
  for (let device = 0; device <= SUSPECT_LIMIT.anonymousIdsMax; device++)
    await fixture.identify(`device-${device}`, 'untyped', 'shared');
  return fixture;
}

it('identity suspects lists an id that linked 21 anonymous ids within a day, and allow retries its refused link', async () => {
  const fixture = await openSuspectFixture();
  const { results } = await fixture.run('suspects', 'list', ...PRODUCTION);
  expect(results).toEqual([expect.stringContaining(`${KEY}  held`)]);
  const allowed = await fixture.run('suspects', 'allow', ...NAMED, '--yes');
  expect(allowed).toMatchObject({ code: EXIT.ok, text: 'allowed; refused links to be decided again: 1' });
  expect(fixture.log.repeated).toEqual([SUSPECT_LIMIT.anonymousIdsMax]);
  expect((await fixture.run('suspects', 'list', ...PRODUCTION, '--json')).text).toContain('"state":"allowed"');
});

it('identity suspects block requires confirmation, and accepts an id or an identity key', async () => {
  const fixture = await openSuspectFixture();
  expect(await fixture.runWithAnswer('no')('suspects', 'block', ...NAMED)).toMatchObject({ code: EXIT.failed });
  expect(fixture.log.published).toEqual([]);
  expect((await fixture.runWithAnswer('yes')('suspects', 'block', ...PRODUCTION, '--key', KEY)).text).toBe('blocked');
  await fixture.identify('device-99', 'untyped', 'shared');
  expect(fixture.stored.links.at(-1)).toMatchObject({ outcome: 'refused', reason: 'blocked' });
});

it('identity suspects list reports an environment without suspects', async () => {
  const fixture = await openMemoryFixture();
  expect((await fixture.run('suspects', 'list', ...PRODUCTION)).text).toBe(`No suspects in ${ENVIRONMENT}.`);
  expect(await fixture.run('suspects', 'unknown', ...PRODUCTION)).toMatchObject({ code: EXIT.usage });
});
