import { randomBytes } from 'node:crypto';
import { dropStaleBatches, type ErasureRequest } from '@playline/erasure';
import { openMemoryErasureRows } from '@playline/erasure/memory';
import { expect, it } from 'vitest';
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
  const findLinks: typeof rows.findLinks = async (look) => {
    // The search has no progress row, so nothing shows that it is still running.
    expect(await tidyIn(5 * HOUR_MS)).toBe(0);
    return rows.findLinks(look);
  };
  const [closure] = await resolveClosures({ rows: { ...rows, findLinks }, findOthers }, [request]);
  expect(closure).toMatchObject({ keys: subjectKeys });
  expect(await rows.readBatches()).toEqual([]);
  await resolveClosures({ rows: { ...rows, dropTargets: async () => {} }, findOthers }, [request]);
  expect(await tidyIn(7 * HOUR_MS)).toBe(1);
  expect(await rows.readBatches()).toEqual([]);
});
