import { GATHERING } from '@playline/people';
import { expect, it } from 'vitest';
import { EXIT } from '../command.ts';
import { ENVIRONMENT, keyOf, openMemoryBench } from './test/memory-bench.ts';

const IN = ['--environment', 'production'];
const NAMED = [...IN, '--kind', 'untyped', '--id', 'shared'];
const KEY = keyOf(ENVIRONMENT, 'untyped', 'shared').toString('hex');

async function openHeld() {
  const bench = await openMemoryBench();
  for (let at = 0; at <= GATHERING.anonymousIdsMax; at++) await bench.identify(`device-${at}`, 'untyped', 'shared');
  return bench;
}

it('identity suspects lists an id from its 21st anonymous id within a day on, and allows it with its refused link', async () => {
  const bench = await openHeld();
  const { results } = await bench.run('suspects', 'list', ...IN);
  expect(results).toEqual([expect.stringContaining(`${KEY}  held`)]);
  const allowed = await bench.run('suspects', 'allow', ...NAMED, '--yes');
  expect(allowed).toMatchObject({ code: EXIT.ok, text: 'allowed; 1 refused links are decided again' });
  expect(bench.log.again).toEqual([GATHERING.anonymousIdsMax]);
  expect((await bench.run('suspects', 'list', ...IN, '--json')).text).toContain('"state":"allowed"');
});

it('identity suspects blocks an id, given by its key as well, after confirmation', async () => {
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
