import type { ErasureRequest } from '@playline/erasure';
import { expect, it } from 'vitest';
import { createKeys, ENVIRONMENT, openWorld, T, toHex, toWaiting } from '../test/overlap-world.ts';
import { beginBatch, finishBatch, toBatches } from './erase-batch.ts';
import type { ErasedPerson } from './persons.ts';

const { signal } = new AbortController();
const keysOf = ({ identities }: ErasedPerson) => identities.map(({ key }) => key);

it("an erasure completes even if another erasure's later cut-off permits later links", async () => {
  const { people, records, log, runLinker, parts, requestErasure } = await openWorld();
  const [subject, member, later] = createKeys(3) as [Buffer, Buffer, Buffer];
  log.push({ a: subject, b: member, at: T - 1 });
  await runLinker();
  await requestErasure(subject, T);
  log.push({ a: subject, b: later, at: T + 5 });
  const first = (await beginBatch(parts, await records.readUnfinished(), signal))!;
  const second = await requestErasure(subject, T + 10);
  expect(await finishBatch(parts, first, signal)).toHaveLength(1);
  // The second erasure includes links that the first erasure deleted or permitted.
  const unfinished = await records.readUnfinished();
  expect(unfinished.map(({ erasureId }) => erasureId)).toEqual([second.erasureId]);
  const batch = (await beginBatch(parts, unfinished, signal))!;
  expect(toHex(keysOf(batch.persons[0]!))).toEqual(toHex([subject, member, later]));
  expect(await finishBatch(parts, batch, signal)).toHaveLength(1);
  expect(await people.graph.rootOf(ENVIRONMENT, later)).toBeNull();
  expect(await people.guards.listHolds(ENVIRONMENT)).toEqual([]);
});

it('an eraser that was paused while reading decisions does not start an erasure that another eraser has swept', async () => {
  const { records, rows, log, runLinker, parts, requestErasure } = await openWorld();
  const [subject, member] = createKeys(2) as [Buffer, Buffer];
  log.push({ a: subject, b: member, at: T - 1 });
  await runLinker();
  const request = { ...(await requestErasure(subject, T)), memberKeys: [] };
  const resume = Promise.withResolvers<void>();
  const paused = { ...parts, barrier: { ...parts.barrier, linksStored: () => resume.promise.then(() => []) } };
  const lateBatch = beginBatch(paused, [request], signal);
  const crashing = { ...parts, rows: { ...rows, findConsents: () => Promise.reject(new Error('killed')) } };
  const started = (await beginBatch(parts, [request], signal))!;
  await expect(finishBatch(crashing, started, signal)).rejects.toThrow('killed');
  resume.resolve();
  await expect(lateBatch).rejects.toThrow('another process has started');
  const [restored] = toBatches(await records.readProgress(), await records.readUnfinished());
  const [receipt] = await finishBatch(parts, restored!, signal);
  expect(receipt).toMatchObject({ closureCount: 2, deleted: { 'clickhouse.identity_links': 1, 'redis.i': 2 } });
});

it("an eraser that was paused after reading decisions does not overwrite another eraser's closure", async () => {
  const { records, log, runLinker, parts, people, requestErasure } = await openWorld();
  const [subject, member] = createKeys(2) as [Buffer, Buffer];
  await requestErasure(subject, T);
  const [request] = (await records.readUnfinished()) as [ErasureRequest];
  const [reached, resume] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const extend: typeof people.guards.extendHold = async (hold) => {
    const holds = await people.guards.extendHold(hold);
    reached.resolve();
    await resume.promise;
    return holds;
  };
  const lateBatch = beginBatch(
    { ...parts, people: { ...people, guards: { ...people.guards, extendHold: extend } } },
    [request],
    signal,
  );
  await reached.promise;
  // This link was accepted in time but published late.
  log.push({ a: subject, b: member, at: T - 1 });
  await runLinker();
  const started = (await beginBatch(parts, [request], signal))!;
  resume.resolve();
  await expect(lateBatch).rejects.toThrow('another process has started');
  const [receipt] = await finishBatch(parts, started, signal);
  expect(receipt!.closureCount).toBe(2);
  expect((await records.readRequests([request.erasureId]))[0]!.memberKeys).toEqual([member]);
  expect(await records.readProgress()).toEqual([]);
});

it('an erasure waits for a released link, and is excluded from the batch while the link is undecided', async () => {
  const { records, log, runLinker, parts, requestErasure } = await openWorld();
  const [subject, other] = createKeys(2) as [Buffer, Buffer];
  await requestErasure(subject, T);
  log.push({ a: subject, b: other, at: T - 1 });
  const barrier = { ...parts.barrier, linksStored: async () => log.slice(isDecided() ? 1 : 0).map(toWaiting) };
  let polls = 0;
  const isDecided = () => polls >= 3;
  const pause = async () => {
    polls++;
    if (isDecided()) await runLinker();
  };
  const requests = await records.readUnfinished();
  expect(await beginBatch({ ...parts, barrier, pause: async () => {} }, requests, signal)).toBeNull();
  const batch = (await beginBatch({ ...parts, barrier, pause }, requests, signal))!;
  expect(batch.persons.map((person) => toHex(keysOf(person)))).toEqual([toHex([subject, other])]);
});

it('an eraser stops immediately during a long sweep, and the next eraser finishes the batch', async () => {
  const { records, rows, parts, requestErasure } = await openWorld();
  const [subject] = createKeys(1) as [Buffer];
  const request = await requestErasure(subject, T);
  const stop = new AbortController();
  // Simulates a long sweep that ends only when the signal is aborted.
  const sweep: typeof rows.sweep = (_batchId, ended) => {
    const aborted = new Promise<never>((_, reject) => ended?.addEventListener('abort', () => reject(ended.reason)));
    stop.abort(new Error('SIGTERM'));
    return aborted;
  };
  const batch = (await beginBatch(parts, [request], stop.signal))!;
  await expect(finishBatch({ ...parts, rows: { ...rows, sweep } }, batch, stop.signal)).rejects.toThrow('SIGTERM');
  const [restored] = toBatches(await records.readProgress(), await records.readUnfinished());
  expect(await finishBatch(parts, restored!, signal)).toHaveLength(1);
});
