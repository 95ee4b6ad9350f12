import { testStores } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Client } from '../conformance/client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from '../conformance/gateway.ts';
import { createJudge } from './judge.ts';
import { FUZZ_SETTINGS, runFuzz } from './run.ts';

/** Twenty bodies each, the same on a machine of any speed. `npm run fuzz` takes minutes, with other seeds. */
const SEEDS = 30;
const SEED = 20261121;

let gateway: Client & ConformanceGateway;
beforeAll(async () => {
  gateway = await startGateway(FUZZ_SETTINGS);
}, START_MAX_MS);
afterAll(() => gateway.close());

describe('whatever is posted', () => {
  it(
    'is answered as documented and never with a 5xx, and what was accepted is on the log exactly once',
    async () => {
      const options = { gateway, brokers: testStores().kafka, seed: SEED, bound: { seeds: SEEDS } };
      const report = await runFuzz(options);
      expect(report.faults).toEqual([]);
      expect(report).toMatchObject({ missing: [], repeated: [], unwanted: [] });
      expect(Object.keys(report.byStatus)).toEqual(['200', '400']);
      expect(report.accepted).toBeGreaterThan(0);
      expect(report.rejected).toBeGreaterThan(0);
    },
    START_MAX_MS,
  );
});

describe('the judge', () => {
  const id = '0192f1c0-7b3a-7c4d-8e5f-000000000001';
  const body = { text: '{}', messages: [{ messageId: id }] };
  const fine = { success: true, accepted: 1, rejected: 0, rejections: [] };

  it.each<[string, number, unknown]>([
    ['a 500', 500, { ...fine }],
    ['a status that is not documented', 418, fine],
    ['a body that is not documented', 200, { ...fine, more: 1 }],
    ['numbers that are not what was sent', 200, { ...fine, rejected: 1 }],
    ['a success without an accepted message', 200, { ...fine, accepted: 0, rejected: 1 }],
    ['a message that was neither accepted nor named', 400, { ...fine, success: false, accepted: 0, rejected: 1 }],
  ])('finds fault with %s', async (_, status, answer) => {
    const judge = createJudge((await gateway.request('/openapi.json')).body);
    expect(judge(body, { status, text: JSON.stringify(answer) }).faults).not.toEqual([]);
    expect(judge(body, { status: 200, text: JSON.stringify(fine) })).toEqual({
      faults: [],
      accepted: [id],
      rejected: [],
    });
  });
});
