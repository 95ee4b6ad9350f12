import type { IdentityDecisionRecord } from '@playline/contracts';
import { GATHERING } from '@playline/people';
import { expect, it } from 'vitest';
import { EXIT } from '../command.ts';
import { ENVIRONMENT, keyOf, openMemoryBench } from './test/memory-bench.ts';

const hexOf = (kind: Parameters<typeof keyOf>[1], id: string) => keyOf(ENVIRONMENT, kind, id).toString('hex');
const IN = ['--environment', 'production'];
const subjectArgs = (kind: string, id: string) => [...IN, '--kind', kind, '--id', id];
const BOB = 'bob@example.org';

/** Bob, whose e-mail address was merged with a stranger: device, steam:bob, untyped:bob, email:bob. */
async function openMerged() {
  const bench = await openMemoryBench();
  await bench.identify('device', 'steam', 'bob');
  await bench.alias('steam', 'bob', ['email', BOB]);
  return bench;
}

const membersOf = async ({ run }: Awaited<ReturnType<typeof openMerged>>, kind: string, id: string) =>
  (await run('members', ...subjectArgs(kind, id), '--json')).results.map((line) => JSON.parse(line));

it('identity unlink shows which identities leave and stay, prompts, splits the person, and reports both persons', async () => {
  const bench = await openMerged();
  const { code, results } = await bench.runAnswering('yes')('unlink', ...subjectArgs('email', BOB));
  expect(code).toBe(EXIT.ok);
  expect(results.filter((line) => line.includes('leaves'))).toEqual([expect.stringContaining(hexOf('email', BOB))]);
  expect(results.filter((line) => line.includes(' stays '))).toHaveLength(3);
  expect(results.join()).toContain('The link fact is 0/3/2 in the log');
  expect(await membersOf(bench, 'email', BOB)).toMatchObject([{ key: hexOf('email', BOB) }]);
  const stayed = (await membersOf(bench, 'steam', 'bob')).map(({ key }) => key);
  expect(stayed.sort()).toEqual([hexOf('anonymous', 'device'), hexOf('steam', 'bob'), hexOf('untyped', 'bob')].sort());
  expect((await bench.run('resolve', ...subjectArgs('email', BOB), '--json')).text).toContain('"agrees":true');
  // The log never contains raw ids.
  expect(JSON.stringify(bench.log.published)).not.toContain('bob');
});

it('identity unlink accepts several identities by kind and id or by key, and counts duplicates once', async () => {
  for (const named of [
    ['--kind', 'steam', '--id', 'bob', '--kind', 'untyped', '--id', 'bob'],
    ['--kind', 'steam', '--id', 'bob', '--id', ' bob ', '--key', hexOf('untyped', 'bob')],
    ['--key', hexOf('steam', 'bob'), '--key', hexOf('untyped', 'bob')],
  ]) {
    const bench = await openMerged();
    const { code, results } = await bench.run('unlink', ...IN, ...named, '--yes', '--json');
    const outcome = JSON.parse(results.join());
    expect({ code, outcome }).toMatchObject({ code: EXIT.ok, outcome: { outcome: 'unlinked', place: '0/3/2' } });
    expect(outcome.split.keys).toEqual([hexOf('steam', 'bob'), hexOf('untyped', 'bob')].sort());
    expect(outcome.stayed.keys).toEqual([hexOf('anonymous', 'device'), hexOf('email', BOB)].sort());
  }
});

it.each([
  ['the answer no', 'no', EXIT.failed],
  ['no terminal', undefined, EXIT.usage],
])('identity unlink publishes nothing without confirmation: %s', async (_, answer, expected) => {
  const bench = await openMerged();
  const run = answer === undefined ? bench.run : bench.runAnswering(answer);
  const { code, progress } = await run('unlink', ...subjectArgs('email', BOB));
  expect(code).toBe(expected);
  expect(progress).toMatch(/nothing was changed|--yes/);
  expect(bench.log.published).toEqual([]);
});

it.each([
  ['of two persons', [...subjectArgs('email', BOB), '--kind', 'steam', '--id', 'zoe'], 'not of one person'],
  ['that are not linked', subjectArgs('steam', 'unknown'), 'a person of its own already'],
  [
    'that are the whole person',
    [...IN, '--kind', 'steam', '--id', 'zoe', '--kind', 'untyped', '--id', 'zoe'],
    'nothing to split',
  ],
])('identity unlink refuses identities %s with a message, and publishes nothing', async (_, named, sentence) => {
  const bench = await openMerged();
  await bench.alias('steam', 'zoe', ['untyped', 'zoe']);
  const { code, progress, results } = await bench.run('unlink', ...named, '--yes');
  expect({ code, results }).toEqual({ code: EXIT.failed, results: [] });
  expect(progress).toContain(sentence);
  expect(bench.log.published).toEqual([]);
});

it('identity unlink exits with 2 for invalid arguments, and repeats no id', async () => {
  const { run } = await openMerged();
  for (const args of [
    IN,
    [...IN, '--kind', 'steam'],
    [...IN, '--id', BOB],
    [...IN, '--kind', 'steam', '--kind', 'epic', '--id', BOB],
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
  ['a person who changed since the plan', { outcome: 'refused', reason: 'not_one_person' }, 'not of one person'],
  ['a person who was erased since the plan', { outcome: 'refused', reason: 'fenced' }, 'erasure'],
  ['a person who is already split', { outcome: 'unchanged', reason: '' }, 'nothing to split'],
  [
    'linkers of a release without unlink',
    { outcome: 'unchanged', reason: '', unlink: null },
    'a release that cannot split',
  ],
] as const)('identity unlink exits with 1 if the linkers split nothing: %s', async (_, changes, sentence) => {
  const bench = await openMerged();
  const none = { stayedRoot: Buffer.alloc(16), stayed: [] };
  const { toDecision } = bench.log;
  bench.log.toDecision = async (fact) =>
    ({ ...(await toDecision(fact))!, moved: [], unlink: none, ...changes }) as IdentityDecisionRecord;
  const { code, progress } = await bench.run('unlink', ...subjectArgs('email', BOB), '--yes');
  expect(code).toBe(EXIT.failed);
  expect(progress).toContain('nothing was split');
  expect(progress).toContain(sentence);
});

it('identity unlink exits with 3 without a decision in time: the fact is in the log and will be decided', async () => {
  const bench = await openMerged();
  bench.log.toDecision = async () => null;
  const { code, progress } = await bench.run('unlink', ...subjectArgs('email', BOB), '--yes', '--wait-seconds', '1');
  expect(code).toBe(EXIT.unreachable);
  expect(progress).toContain('will be decided');
  expect(bench.log.published).toHaveLength(1);
});

it('identity why shows the split and the links refused since, and uses no link that the split has undone', async () => {
  const bench = await openMerged();
  await bench.run('unlink', ...subjectArgs('email', BOB), '--yes');
  // A client repeats the old message with its old time.
  await bench.alias('steam', 'bob', ['email', BOB]);
  const printed = await bench.run('why', ...subjectArgs('email', BOB));
  expect(printed.text).toContain('unlink  unlinked: an operator split the two, and 1 identity became another person');
  expect(printed.text).toContain('refused: an operator has split the two');
  const other = ['--other-kind', 'email', '--other-id', BOB];
  const parted = await bench.run('why', ...subjectArgs('anonymous', 'device'), ...other);
  expect(parted.text).toContain('They are two persons.');
  // A later message joins the persons again: links from before the split are not part of the chain.
  const later = Date.now() + 60_000;
  await bench.alias('epic', 'kim', ['steam', 'bob', later]);
  await bench.alias('epic', 'kim', ['email', BOB, later]);
  const chain = await bench.run('why', ...subjectArgs('steam', 'bob'), ...other, '--json');
  expect(chain.results.map((line) => JSON.parse(line).a.key)).toEqual([hexOf('epic', 'kim'), hexOf('epic', 'kim')]);
});

const NAMED = [...IN, '--kind', 'untyped', '--id', 'shared'];
const KEY = keyOf(ENVIRONMENT, 'untyped', 'shared').toString('hex');

async function openHeld() {
  const bench = await openMemoryBench();
  for (let device = 0; device <= GATHERING.anonymousIdsMax; device++)
    await bench.identify(`device-${device}`, 'untyped', 'shared');
  return bench;
}

it('identity suspects lists an id after its 21st anonymous id within a day, and allows the id with its refused link', async () => {
  const bench = await openHeld();
  const { results } = await bench.run('suspects', 'list', ...IN);
  expect(results).toEqual([expect.stringContaining(`${KEY}  held`)]);
  const allowed = await bench.run('suspects', 'allow', ...NAMED, '--yes');
  expect(allowed).toMatchObject({ code: EXIT.ok, text: 'allowed; 1 refused links are decided again' });
  expect(bench.log.again).toEqual([GATHERING.anonymousIdsMax]);
  expect((await bench.run('suspects', 'list', ...IN, '--json')).text).toContain('"state":"allowed"');
});

it('identity suspects blocks an id, also by key, after confirmation', async () => {
  const bench = await openHeld();
  expect(await bench.runAnswering('no')('suspects', 'block', ...NAMED)).toMatchObject({ code: EXIT.failed });
  expect(bench.log.published).toEqual([]);
  expect((await bench.runAnswering('yes')('suspects', 'block', ...IN, '--key', KEY)).text).toBe('blocked');
  await bench.identify('device-99', 'untyped', 'shared');
  expect(bench.stored.links.at(-1)).toMatchObject({ outcome: 'refused', reason: 'blocked' });
});

it('identity suspects reports that nothing is held', async () => {
  const bench = await openMemoryBench();
  expect((await bench.run('suspects', 'list', ...IN)).text).toBe(`No id of ${ENVIRONMENT} is held.`);
  expect(await bench.run('suspects', 'else', ...IN)).toMatchObject({ code: EXIT.usage });
});
