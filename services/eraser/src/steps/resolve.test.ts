import { randomBytes } from 'node:crypto';
import { dropStaleBatches, type ErasureRequest } from '@playline/erasure';
import { openMemoryErasureRows } from '@playline/erasure/memory';
import { expect, it } from 'vitest';
import { takeLinks } from './persons.ts';
import { resolveClosures } from './resolve.ts';

const HOUR_MS = 3_600_000;
const findOthers = async () => [];
const NOBODY_WORKS = async () => new Set<string>();

it('a search for closures keeps its targets while the upkeep tidies, and loses them six hours after it was killed', async () => {
  const rows = openMemoryErasureRows();
  const subjectKeys = [randomBytes(16)];
  const names = { erasureId: randomBytes(16), environmentId: 'env', subjectKeys, memberKeys: [] };
  const request: ErasureRequest = { ...names, cutoffAt: Date.now(), requestedAt: Date.now(), traceId: '' };
  const tidyIn = (ms: number) =>
    dropStaleBatches({ rows, wallClockMs: () => Date.now() + ms, readWorkedOn: NOBODY_WORKS });
  const findLinks: typeof rows.findLinks = async function* (look) {
    // The search has no progress row, so nothing shows that it is still running.
    expect(await tidyIn(5 * HOUR_MS)).toBe(0);
    yield* rows.findLinks(look);
  };
  const [closure] = await resolveClosures({ rows: { ...rows, findLinks }, findOthers }, [request]);
  expect(closure).toMatchObject({ keys: subjectKeys });
  expect(await rows.readBatches()).toEqual([]);
  await resolveClosures({ rows: { ...rows, dropTargets: async () => {} }, findOthers }, [request]);
  expect(await tidyIn(7 * HOUR_MS)).toBe(1);
  expect(await rows.readBatches()).toEqual([]);
});

it('a person of 600 identities with 180,000 links is resolved, and each link is taken once for all requests', async () => {
  const rows = openMemoryErasureRows();
  const keys = Array.from({ length: 600 }, () => randomBytes(16));
  const last = { generation: 0, offset: 1 };
  let targets = new Set<string>();
  const putTargets: typeof rows.putTargets = async (look, put) => {
    await rows.putTargets(look, put);
    targets = new Set(put.map(({ key }) => key.toString('latin1')));
  };
  const findLinks: typeof rows.findLinks = async function* () {
    const isTarget = keys.map((key) => targets.has(key.toString('latin1')));
    for (const [at, a] of keys.entries())
      for (let other = at + 1; other < keys.length; other++)
        if (isTarget[at] || isTarget[other]) yield { environmentId: 'env', a, b: keys[other]!, receivedAtMs: 0, last };
  };
  const requests = keys.slice(0, 20).map((key, at): ErasureRequest => {
    const names = { erasureId: randomBytes(16), environmentId: 'env', subjectKeys: [key], memberKeys: [] };
    return { ...names, cutoffAt: 1 + (at % 3), requestedAt: 1, traceId: '' };
  });
  const closures = await resolveClosures({ rows: { ...rows, putTargets, findLinks }, findOthers }, requests);
  for (const closure of closures) expect(closure.keys).toHaveLength(600);
  const taken = [...takeLinks(closures).values()];
  expect(taken.every((links) => links.length > 0)).toBe(true);
  expect(new Set(taken.flat()).size).toBe((600 * 599) / 2);
  expect(taken.reduce((count, links) => count + links.length, 0)).toBe((600 * 599) / 2 + requests.length - 1);
});
