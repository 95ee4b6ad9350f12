import { randomBytes } from 'node:crypto';
import { openMemoryErasureRecords } from '@playline/erasure/memory';
import type { GraphFact } from '@playline/people';
import { openMemoryPeople } from '@playline/people/memory';
import { createLogger } from '@playline/runtime';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { openFenceKeeper } from './pipeline.ts';

const T = Date.UTC(2026, 5, 15);
const ENVIRONMENT = 'env';

it('after Redis restarts with outdated data, the eraser restores holds and fences and removes erased people', async () => {
  const people = openMemoryPeople();
  await people.rebuild.mintEpoch();
  const records = openMemoryErasureRecords();
  let restored = 0;
  const [erased, friend, waiting] = [randomBytes(16), randomBytes(16), randomBytes(16)];
  const apply = (offset: number, receivedAt: number) => {
    const step = { link: 'alias', aKind: 'custom', bKind: 'custom', blocked: false, otherKeys: [] } as const;
    const times = { environmentId: ENVIRONMENT, offset, receivedAt, eventTime: receivedAt };
    const fact = { ...times, steps: [{ ...step, aKey: erased, bKey: friend }] } as unknown as GraphFact;
    return people.graph.apply({ generation: 0, partition: 0, after: offset - 1, through: offset, facts: [fact] });
  };
  // Redis restarts with a link and a consent, but without the fence and the hold.
  await apply(0, T);
  const position = { partition: 0, offset: 1, loggedAtMs: T };
  await people.consents.apply({
    environmentId: ENVIRONMENT,
    identityKey: erased,
    status: 'full',
    receivedAt: T,
    position,
  });
  people.restart();
  await records.putFences([{ environmentId: ENVIRONMENT, key: erased, cutoffMs: T, erasureId: randomBytes(16) }]);
  const request = {
    erasureId: randomBytes(16),
    environmentId: ENVIRONMENT,
    memberKeys: [],
    requestedAt: T,
    traceId: '',
  };
  await records.putRequests([{ ...request, subjectKeys: [waiting], cutoffAt: T + 5 }]);
  await expect(apply(1, T)).rejects.toThrow('fences');
  const keeper = openFenceKeeper({
    people,
    records,
    logger: createLogger({ service: 'test', level: 'silent' }),
    onRestored: () => restored++,
  });
  await until('the fences are restored', () => people.ready());
  expect(await people.graph.rootOf(ENVIRONMENT, erased)).toBeNull();
  expect(await people.consents.read(ENVIRONMENT, erased)).toBeNull();
  expect(people.holdOf(ENVIRONMENT, waiting)).toBe(T + 5);
  await apply(1, T);
  expect(await people.graph.rootOf(ENVIRONMENT, erased)).toBeNull();
  expect(restored).toBe(1);
  await keeper.close();
});
