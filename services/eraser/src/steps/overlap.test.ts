import type { ErasureRequest } from '@playline/erasure';
import { expect, it } from 'vitest';
import { createKeys, ENVIRONMENT, openWorld, T, toEvent, toHex, toWaiting } from '../test/overlap-world.ts';
import { beginBatch, finishBatch, toBatches } from './erase-batch.ts';
import type { ErasedPerson } from './persons.ts';

const { signal } = new AbortController();
const keysOf = ({ identities }: ErasedPerson) => identities.map(({ key }) => key);

it('an erasure ends although another one of the same person, with a later cut-off, lets links up to that pass', async () => {
  const { people, records, log, runLinker, parts, take } = await openWorld();
  const [subject, member, later] = createKeys(3) as [Buffer, Buffer, Buffer];
  log.push({ a: subject, b: member, at: T - 1 });
  await runLinker();
  await take(subject, T);
  log.push({ a: subject, b: later, at: T + 5 });
  const first = (await beginBatch(parts, await records.readUnfinished(), signal))!;
  const second = await take(subject, T + 10);
  expect(await finishBatch(parts, first, signal)).toHaveLength(1);
  // The second erases everybody linked by its cut-off, also by links that the first has swept or let pass.
  const unfinished = await records.readUnfinished();
  expect(unfinished.map(({ erasureId }) => erasureId)).toEqual([second.erasureId]);
  const batch = (await beginBatch(parts, unfinished, signal))!;
  expect(toHex(keysOf(batch.persons[0]!))).toEqual(toHex([subject, member, later]));
  expect(await finishBatch(parts, batch, signal)).toHaveLength(1);
  expect(await people.graph.rootOf(ENVIRONMENT, later)).toBeNull();
  expect(await people.guards.listHolds(ENVIRONMENT)).toEqual([]);
});

it('an eraser paused while it reads decisions does not begin an erasure that another has begun and swept', async () => {
  const { records, rows, log, runLinker, parts, take } = await openWorld();
  const [subject, member] = createKeys(2) as [Buffer, Buffer];
  log.push({ a: subject, b: member, at: T - 1 });
  await runLinker();
  const request = { ...(await take(subject, T)), memberKeys: [] };
  const goOn = Promise.withResolvers<void>();
  const paused = { ...parts, barrier: { ...parts.barrier, linksStored: () => goOn.promise.then(() => []) } };
  const late = beginBatch(paused, [request], signal);
  const mortal = { ...parts, rows: { ...rows, findConsents: () => Promise.reject(new Error('killed')) } };
  const begun = (await beginBatch(parts, [request], signal))!;
  await expect(finishBatch(mortal, begun, signal)).rejects.toThrow('killed');
  goOn.resolve();
  await expect(late).rejects.toThrow('another process has begun');
  const [left] = toBatches(await records.readProgress(), await records.readUnfinished());
  const [receipt] = await finishBatch(parts, left!, signal);
  expect(receipt).toMatchObject({ closureCount: 2, deleted: { 'clickhouse.identity_links': 1, 'redis.i': 2 } });
});

it('an eraser paused after reading decisions keeps the closure that another has stored', async () => {
  const { records, log, runLinker, parts, people, take } = await openWorld();
  const [subject, member] = createKeys(2) as [Buffer, Buffer];
  await take(subject, T);
  const [request] = (await records.readUnfinished()) as [ErasureRequest];
  const [reached, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const extend: typeof people.guards.extendHold = async (hold) => {
    const holds = await people.guards.extendHold(hold);
    reached.resolve();
    await goOn.promise;
    return holds;
  };
  const late = beginBatch(
    { ...parts, people: { ...people, guards: { ...people.guards, extendHold: extend } } },
    [request],
    signal,
  );
  await reached.promise;
  // Accepted in time, and published late.
  log.push({ a: subject, b: member, at: T - 1 });
  await runLinker();
  const begun = (await beginBatch(parts, [request], signal))!;
  goOn.resolve();
  await expect(late).rejects.toThrow('another process has noted');
  const [receipt] = await finishBatch(parts, begun, signal);
  expect(receipt!.closureCount).toBe(2);
  expect((await records.readRequests([request.erasureId]))[0]!.memberKeys).toEqual([member]);
  expect(await records.readProgress()).toEqual([]);
});

it('an erasure includes people joined only by a link that another hold delays, and people that erasure has found', async () => {
  const { rows, records, log, runLinker, parts, take } = await openWorld();
  const [subject, device, other] = createKeys(3) as [Buffer, Buffer, Buffer];
  log.push({ a: subject, b: device, at: T - 1 });
  await runLinker();
  await take(subject, T);
  log.push({ a: subject, b: other, at: T + 5 });
  const second = await take(other, T + 10);
  rows.add('events', toEvent(device, T + 3));
  // Both are requested at once, and the second waits although it could be done.
  const first = (await beginBatch(parts, await records.readUnfinished(), signal))!;
  expect(first.persons.map((person) => toHex(keysOf(person)))).toEqual([toHex([subject, device])]);
  expect(await beginBatch(parts, [second], signal)).toBeNull();
  await finishBatch(parts, first, signal);
  const batch = (await beginBatch(parts, await records.readUnfinished(), signal))!;
  expect(batch.persons.map((person) => toHex(keysOf(person)))).toEqual([toHex([subject, device, other])]);
  await finishBatch(parts, batch, signal);
  expect(rows.rowsOf('events')).toEqual([]);
});

it('an erasure includes people whose link another erasure has deleted after a third had joined them', async () => {
  const { rows, records, log, runLinker, parts, take } = await openWorld();
  const [first, between, subject, far] = createKeys(4) as [Buffer, Buffer, Buffer, Buffer];
  log.push({ a: first, b: between, at: T - 1 });
  await runLinker();
  await take(first, T);
  // Both wait for the first erasure, which deletes the links that join them.
  log.push({ a: first, b: subject, at: T + 1 }, { a: between, b: far, at: T + 2 });
  await take(subject, T + 10);
  const finishNext = async () => {
    const [next] = await records.readUnfinished();
    const batch = (await beginBatch(parts, [next!], signal))!;
    const last = batch.persons.map((person) => toHex(keysOf(person)));
    await finishBatch(parts, batch, signal);
    await runLinker();
    return last;
  };
  await take(subject, T + 20);
  rows.add('events', toEvent(far, T + 15));
  await finishNext();
  const all = toHex([first, between, subject, far]);
  expect(await finishNext()).toEqual([all]);
  expect(await finishNext()).toEqual([all]);
  expect(rows.rowsOf('events')).toEqual([]);
});

it('a waiting erasure includes everybody linked at its request, whatever a later one has swept meanwhile', async () => {
  const { rows, records, log, runLinker, parts, take, tick } = await openWorld();
  const [device, first, user, third] = createKeys(4) as [Buffer, Buffer, Buffer, Buffer];
  log.push({ a: device, b: first, at: tick() });
  const erased = tick();
  await take(first, erased, erased);
  const earlier = (await beginBatch(parts, await records.readUnfinished(), signal))!;
  const held = tick();
  await take(third, held, held);
  // The first link waits for the running erasure, the second for the requested one.
  log.push({ a: first, b: user, at: tick() }, { a: third, b: device, at: tick() });
  const asked = tick();
  const waiting = await take(user, asked, asked);
  for (const key of [device, third]) rows.add('events', toEvent(key, asked));
  tick();
  await finishBatch(parts, earlier, signal);
  // Requested after that receipt, so without the device; it deletes the link of the user.
  const later = tick();
  await take(first, later, later);
  for (let left = await records.readUnfinished(); left.length > 0; left = await records.readUnfinished()) {
    await finishBatch(parts, (await beginBatch(parts, left, signal))!, signal);
    await runLinker();
  }
  expect(rows.rowsOf('events')).toEqual([]);
  expect(await records.readReceipt(waiting.erasureId)).toMatchObject({ closureCount: 4 });
});

it('an erasure waits for a released link, and is left out of the batch while the link is undecided', async () => {
  const { records, log, runLinker, parts, take } = await openWorld();
  const [subject, other] = createKeys(2) as [Buffer, Buffer];
  await take(subject, T);
  log.push({ a: subject, b: other, at: T - 1 });
  const barrier = { ...parts.barrier, linksStored: async () => log.slice(isDecided() ? 1 : 0).map(toWaiting) };
  let looks = 0;
  const isDecided = () => looks >= 3;
  const pause = async () => {
    looks++;
    if (isDecided()) await runLinker();
  };
  const requests = await records.readUnfinished();
  expect(await beginBatch({ ...parts, barrier, pause: async () => {} }, requests, signal)).toBeNull();
  const batch = (await beginBatch({ ...parts, barrier, pause }, requests, signal))!;
  expect(batch.persons.map((person) => toHex(keysOf(person)))).toEqual([toHex([subject, other])]);
});

it('an eraser told to stop while a sweep waits for a large table stops at once, and the next one finishes its batch', async () => {
  const { records, rows, parts, take } = await openWorld();
  const [subject] = createKeys(1) as [Buffer];
  const request = await take(subject, T);
  const stop = new AbortController();
  // Like a table of a billion rows: only the signal ends the wait.
  const sweep: typeof rows.sweep = (_batchId, ended) => {
    const over = new Promise<never>((_, reject) => ended?.addEventListener('abort', () => reject(ended.reason)));
    stop.abort(new Error('SIGTERM'));
    return over;
  };
  const batch = (await beginBatch(parts, [request], stop.signal))!;
  await expect(finishBatch({ ...parts, rows: { ...rows, sweep } }, batch, stop.signal)).rejects.toThrow('SIGTERM');
  const [left] = toBatches(await records.readProgress(), await records.readUnfinished());
  expect(await finishBatch(parts, left!, signal)).toHaveLength(1);
});
