import { testStores } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Client } from '../conformance/client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from '../conformance/gateway.ts';
import { createCheck } from './check.ts';
import { FUZZ_SETTINGS, runFuzz } from './run.ts';

/** Number of seeds, with 20 bodies each. The bodies are identical on every machine. */
const SEEDS = 12;
const SEED = 20261121;

let gateway: Client & ConformanceGateway;
beforeAll(async () => {
  gateway = await startGateway(FUZZ_SETTINGS);
}, START_MAX_MS);
afterAll(() => gateway.close());

it(
  'the gateway responds to any body as documented, never with a 5xx, and logs accepted messages exactly once',
  async () => {
    const options = { gateway, brokers: testStores().kafka, seed: SEED, limit: { seeds: SEEDS } };
    const report = await runFuzz(options);
    expect(report).toMatchObject({ problems: [], missing: [], repeated: [], unwanted: [] });
    expect(Object.keys(report.byStatus)).toEqual(['200', '400']);
    expect(report.accepted).toBeGreaterThan(0);
    expect(report.rejected).toBeGreaterThan(0);
  },
  START_MAX_MS,
);

it('the response check reports every type of contract violation', async () => {
  const id = '0192f1c0-7b3a-7c4d-8e5f-000000000001';
  const validResponse = { success: true, accepted: 1, rejected: 0, rejections: [] };
  const check = createCheck((await gateway.request('/openapi.json')).body);
  const checkOf = (status: number, response: unknown) =>
    check({ text: '{}', messages: [{ messageId: id }] }, { status, text: JSON.stringify(response) });

  expect(checkOf(200, validResponse)).toEqual({ problems: [], accepted: [id], rejected: [] });
  expect(checkOf(500, validResponse).problems[0]).toBe('status 500');
  expect(checkOf(418, validResponse).problems).toEqual(['status 418 is not documented']);
  expect(checkOf(200, { ...validResponse, more: 1 }).problems[0]).toMatch(/^the body does not match its schema: /);
  expect(checkOf(200, { ...validResponse, rejected: 1 }).problems).not.toEqual([]);
  expect(checkOf(200, { ...validResponse, accepted: 0, rejected: 1 }).problems).not.toEqual([]);
  expect(checkOf(400, { ...validResponse, success: false, accepted: 0, rejected: 1 }).problems).not.toEqual([]);
});
