import type { MintStateRecord } from '@playline/contracts';
import { expect, it } from 'vitest';
import { toRequest } from '../test/mint-requests.ts';
import { FailedAttempts, toAttemptKey } from './failed-attempts.ts';
import { toFirstState } from './lane-context.ts';

const COUNT = 45_000;
const FIRST = toFirstState({ request: toRequest('a'), partition: 0, offset: 0 }, 1);

/** Each attempt was requested a millisecond after the previous one, and failed in the same order. */
const stateOf = (at: number): MintStateRecord => {
  const attemptId = Buffer.alloc(16);
  attemptId.writeUInt32BE(at);
  return { ...FIRST, attemptId, requestedAt: 1_000 + at, status: 'failed', revision: 2 };
};

function openFailed() {
  const failed = new FailedAttempts();
  const log = { reads: 0, count: 0 };
  const fail = (count: number) => {
    for (let added = 0; added < count; added++) failed.add(stateOf(log.count++));
  };
  const readStates = async function* () {
    log.reads++;
    for (let at = 0; at < log.count; at++) yield stateOf(at);
  };
  const find = async (...attempts: number[]) => {
    const states = attempts.map(stateOf);
    const forgotten = await failed.findForgotten(states, readStates);
    return states.map((state) => failed.has(state) || forgotten.has(toAttemptKey(state)));
  };
  fail(COUNT);
  return { failed, log, fail, find, readStates };
}

it('failed attempts are always recognised, and rereading all requests reads the log only a few times', async () => {
  const { log, find } = openFailed();
  for (let at = 0; at < COUNT; at += 1_000)
    expect(await find(...Array.from({ length: 1_000 }, (_, each) => at + each))).not.toContain(false);
  expect(log.reads).toBeGreaterThan(0);
  expect(log.reads).toBeLessThanOrEqual(3);
});

it('failed attempts are recognised in any order and after further failures', async () => {
  const { fail, find } = openFailed();
  expect(await find(COUNT - 1, 3, COUNT / 2, 2, 1)).toEqual([true, true, true, true, true]);
  fail(COUNT);
  expect(await find(3, COUNT - 1, COUNT + 1, 2 * COUNT - 1)).toEqual([true, true, true, true]);
});

it('a different request with the same time is not a failed attempt, and newer requests do not cause a log read', async () => {
  const { failed, log, readStates } = openFailed();
  const other = { attemptId: Buffer.alloc(16, 0xff), requestedAt: 1_003 };
  expect(await failed.findForgotten([{ ...other, requestedAt: 1_000 + COUNT }], readStates)).toEqual(new Set());
  expect(log.reads).toBe(0);
  expect(await failed.findForgotten([other], readStates)).toEqual(new Set());
});

it('failed attempts are read again after a failed log read', async () => {
  const { failed, find } = openFailed();
  const unreadable = async function* (): AsyncGenerator<MintStateRecord> {
    yield stateOf(1);
    throw new Error('the broker is unavailable');
  };
  await expect(failed.findForgotten([stateOf(0)], unreadable)).rejects.toThrow('the broker is unavailable');
  expect(await find(0)).toEqual([true]);
});
