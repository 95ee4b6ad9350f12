import { randomBytes } from 'node:crypto';
import { dropStaleBatches, type ErasureRequest } from '@playline/erasure';
import { openMemoryErasureRows } from '@playline/erasure/memory';
import { expect, it } from 'vitest';
import { collectLinks } from './persons.ts';
import { resolveClosures, TooManyLinksError } from './resolve.ts';

const HOUR_MS = 3_600_000;
const findOthers = async () => [];
const linksMax = 200_000;
const NO_PROGRESS = async () => new Set<string>();

it('cleanup keeps the targets of a search for six hours', async () => {
  const rows = openMemoryErasureRows();
  const subjectKeys = [randomBytes(16)];
  const names = { erasureId: randomBytes(16), environmentId: 'env', subjectKeys, memberKeys: [] };
  const request: ErasureRequest = { ...names, cutoffAt: Date.now(), requestedAt: Date.now(), traceId: '' };
  const cleanUpIn = (ms: number) =>
    dropStaleBatches({ rows, wallClockMs: () => Date.now() + ms, readActiveBatches: NO_PROGRESS });
  const findLinks: typeof rows.findLinks = async function* (searchId) {
    // A search has no progress row, so only its age protects its targets.
    expect(await cleanUpIn(5 * HOUR_MS)).toBe(0);
    yield* rows.findLinks(searchId);
  };
  const [closure] = await resolveClosures({ rows: { ...rows, findLinks }, findOthers, linksMax }, [request]);
  expect(closure).toMatchObject({ keys: subjectKeys });
  expect(await rows.readBatches()).toEqual([]);
  await resolveClosures({ rows: { ...rows, dropTargets: async () => {} }, findOthers, linksMax }, [request]);
  expect(await cleanUpIn(7 * HOUR_MS)).toBe(1);
  expect(await rows.readBatches()).toEqual([]);
});

it('a person with 180,000 links is resolved and each link is collected once', async () => {
  const rows = openMemoryErasureRows();
  const keys = Array.from({ length: 600 }, () => randomBytes(16));
  const last = { generation: 0, offset: 1 };
  let targets = new Set<string>();
  const putTargets: typeof rows.putTargets = async (searchId, put) => {
    await rows.putTargets(searchId, put);
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
  const closures = await resolveClosures({ rows: { ...rows, putTargets, findLinks }, findOthers, linksMax }, requests);
  for (const closure of closures) expect(closure.keys).toHaveLength(600);
  const collected = [...collectLinks(closures).values()];
  expect(collected.every((links) => links.length > 0)).toBe(true);
  expect(new Set(collected.flat()).size).toBe((600 * 599) / 2);
  expect(collected.reduce((count, links) => count + links.length, 0)).toBe((600 * 599) / 2 + requests.length - 1);
});

it('a search stops at the link limit and reports heavy requests', async () => {
  const rows = openMemoryErasureRows();
  const [linked, other] = [Array.from({ length: 200 }, () => randomBytes(16)), randomBytes(16)];
  const requests = [linked[0]!, other].map((key): ErasureRequest => {
    const names = { erasureId: randomBytes(16), environmentId: 'env', subjectKeys: [key], memberKeys: [] };
    return { ...names, cutoffAt: 1, requestedAt: 1, traceId: '' };
  });
  const last = { generation: 0, offset: 1 };
  let read = 0;
  const findLinks: typeof rows.findLinks = async function* () {
    for (const b of linked.slice(1)) {
      read++;
      yield { environmentId: 'env', a: linked[0]!, b, receivedAtMs: 0, last };
    }
  };
  const search = (parts: Partial<Parameters<typeof resolveClosures>[0]>) =>
    resolveClosures({ rows: { ...rows, findLinks }, findOthers, linksMax: 150, ...parts }, requests);
  const fault = await search({}).catch((error: unknown) => error);
  expect(fault).toBeInstanceOf(TooManyLinksError);
  expect((fault as TooManyLinksError).heavy).toEqual([requests[0]]);
  expect(read).toBe(151);
  let others = 0;
  const findMany = async (_: unknown, onLink: () => void) => {
    for (; others < 1_000; others++) onLink();
    return [];
  };
  const noLinks: typeof rows.findLinks = async function* () {};
  await expect(search({ rows: { ...rows, findLinks: noLinks }, findOthers: findMany })).rejects.toThrow(
    TooManyLinksError,
  );
  expect(others).toBe(150);
  expect(await rows.readBatches()).toEqual([]);
});
