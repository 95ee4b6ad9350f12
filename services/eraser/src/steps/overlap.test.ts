import { randomBytes } from 'node:crypto';
import type { ErasureRequest } from '@playline/erasure';
import { openMemoryErasureRecords, openMemoryErasureRows } from '@playline/erasure/memory';
import type { GraphFact } from '@playline/people';
import { openMemoryPeople } from '@playline/people/memory';
import { expect, it } from 'vitest';
import { type BatchParts, beginBatch, finishBatch, toBatches } from './erase-batch.ts';

const T = Date.UTC(2026, 5, 15);
const ENVIRONMENT = 'env';
const SOURCE = { generation: 0, partition: 0 };

interface Link {
  readonly a: Buffer;
  readonly b: Buffer;
  readonly at: number;
}

/** A log of links and a linker that decides them when it is told to; what waits goes to the end of the log. */
async function openWorld() {
  const [people, rows, records] = [openMemoryPeople(), openMemoryErasureRows(), openMemoryErasureRecords(() => T)];
  await people.rebuild.mintEpoch();
  const log: Link[] = [];
  let next = 0;
  const decide = async (link: Link) => {
    const step = { link: 'alias', aKind: 'custom', bKind: 'anonymous', blocked: false, otherKeys: [] };
    const times = { receivedAt: link.at, eventTime: link.at };
    const steps = [{ ...step, aKey: link.a, bKey: link.b }];
    const fact = { environmentId: ENVIRONMENT, offset: next, ...times, steps } as unknown as GraphFact;
    const [applied] = await people.graph.apply({ ...SOURCE, after: next - 1, through: next, facts: [fact] });
    if (applied?.kind === 'parked') return log.push(link);
    if (applied?.kind !== 'decided') return;
    rows.add('identity_links', {
      ...{ environment_id: ENVIRONMENT, link_generation: 0, link_partition: 0, link_offset: next },
      ...{ outcome: applied.decisions[0]!.outcome, message_id: link.at, a_key: link.a, b_key: link.b },
      ...{ person_key: Buffer.alloc(16), event_time: link.at, received_at: link.at },
    });
  };
  const runLinker = async () => {
    for (const end = log.length; next < end; next++) await decide(log[next]!);
  };
  const parts: BatchParts = {
    ...{ people, rows, records, generation: 0, wallClockMs: () => T },
    barrier: {
      linksStored: runLinker,
      allStored: async () => {
        await runLinker();
        return { byName: {}, consents: new Map() };
      },
      linkCommits: async () => new Map([[0, next]]),
    },
    putBack: async (batchId) => {
      for (const { offset } of await rows.findLaterLinks(batchId)) log.push(log[offset]!);
    },
    // The linker goes on while the eraser waits.
    pause: runLinker,
  };
  return { people, rows, records, log, runLinker, parts };
}

it('an erasure ends although another one of the same person, with a later cut-off, lets links in front of it through', async () => {
  const { people, records, log, runLinker, parts } = await openWorld();
  const [subject, member, later] = [randomBytes(16), randomBytes(16), randomBytes(16)] as const;
  const { signal } = new AbortController();
  const take = async (cutoffAt: number) => {
    const request: ErasureRequest = {
      ...{ erasureId: randomBytes(16), environmentId: ENVIRONMENT, subjectKeys: [subject], memberKeys: [] },
      ...{ cutoffAt, requestedAt: cutoffAt - 2_000, traceId: '' },
    };
    await people.guards.place({ ...request, keys: [subject], cutoffMs: cutoffAt, lapsesAtMs: null });
    await records.putRequests([request]);
    return request;
  };
  log.push({ a: subject, b: member, at: T - 1 });
  await runLinker();
  await take(T);
  log.push({ a: subject, b: later, at: T + 5 });
  const first = await beginBatch(parts, await records.readUnfinished(), signal);
  const second = await take(T + 10);
  expect(await finishBatch(parts, first, signal)).toHaveLength(1);
  // The second is about everybody who was linked by its cut-off, also by what the first has swept or let pass.
  const unfinished = await records.readUnfinished();
  expect(unfinished.map(({ erasureId }) => erasureId)).toEqual([second.erasureId]);
  const batch = await beginBatch(parts, unfinished, signal);
  expect(new Set(batch.persons[0]!.keys.map((key) => key.toString('hex')))).toEqual(
    new Set([subject, member, later].map((key) => key.toString('hex'))),
  );
  expect(await finishBatch(parts, batch, signal)).toHaveLength(1);
  expect(await people.graph.rootOf(ENVIRONMENT, later)).toBeNull();
  expect(await people.guards.list(ENVIRONMENT)).toEqual([]);
});

it('an eraser that was paused while it looked for decisions begins nothing that another one has begun and swept', async () => {
  const { people, records, rows, log, runLinker, parts } = await openWorld();
  const [subject, member] = [randomBytes(16), randomBytes(16)] as const;
  const { signal } = new AbortController();
  log.push({ a: subject, b: member, at: T - 1 });
  await runLinker();
  const request: ErasureRequest = {
    ...{ erasureId: randomBytes(16), environmentId: ENVIRONMENT, subjectKeys: [subject], memberKeys: [] },
    ...{ cutoffAt: T, requestedAt: T - 2_000, traceId: '' },
  };
  await people.guards.place({ ...request, keys: [subject], cutoffMs: T, lapsesAtMs: null });
  await records.putRequests([request]);
  const goOn = Promise.withResolvers<void>();
  const paused = { ...parts, barrier: { ...parts.barrier, linksStored: () => goOn.promise } };
  const late = beginBatch(paused, [request], signal);
  const mortal = { ...parts, rows: { ...rows, findConsents: () => Promise.reject(new Error('killed')) } };
  await expect(finishBatch(mortal, await beginBatch(parts, [request], signal), signal)).rejects.toThrow('killed');
  goOn.resolve();
  await expect(late).rejects.toThrow('another process has begun');
  const [left] = toBatches(await records.readProgress(), await records.readUnfinished());
  const [receipt] = await finishBatch(parts, left!, signal);
  expect(receipt).toMatchObject({ closureCount: 2, deleted: { 'clickhouse.identity_links': 1, 'redis.i': 2 } });
});
