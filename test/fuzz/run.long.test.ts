import { testStores } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Client } from '../conformance/client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from '../conformance/gateway.ts';
import { createJudge } from './judge.ts';
import { FUZZ_SETTINGS, runFuzz } from './run.ts';

/**
 * Number of seeds, with twenty bodies each. The bodies are the same on any machine. `npm run fuzz` takes minutes and
 * uses other seeds.
 */
const SEEDS = 30;
const SEED = 20261121;

let gateway: Client & ConformanceGateway;
beforeAll(async () => {
  gateway = await startGateway(FUZZ_SETTINGS);
}, START_MAX_MS);
afterAll(() => gateway.close());

describe('any posted body', () => {
  it(
    'is answered as documented and never with a 5xx, and accepted messages are on the log exactly once',
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

describe('the judge of answers', () => {
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
  ])('reports %s as a fault', async (_, status, answer) => {
    const judge = createJudge((await gateway.request('/openapi.json')).body);
    expect(judge(body, { status, text: JSON.stringify(answer) }).faults).not.toEqual([]);
    expect(judge(body, { status: 200, text: JSON.stringify(fine) })).toEqual({
      faults: [],
      accepted: [id],
      rejected: [],
    });
  });
});
