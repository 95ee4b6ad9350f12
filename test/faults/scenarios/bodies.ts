import assert from 'node:assert/strict';
import { type Attempt, post } from '../world/post.ts';
import { type Reached, tally } from '../world/reached.ts';
import type { Scenario, Trial } from '../world/trial.ts';
import { createHostileBodies, createMixedBodies, type HostileBody } from './hostile-bodies.ts';

/** Asserts that a body that is no batch gets the error envelope, and that a batch is answered message by message. */
function checkAnswer({ name, status, stored, batch }: HostileBody, attempt: Attempt): void {
  assert.equal(attempt.status, status, `${name}: ${attempt.text}`);
  const answer = JSON.parse(attempt.text) as Record<string, unknown> & { rejections?: unknown[] };
  const kinds = ['code', 'message', 'link', 'trace_id'].map((field) => typeof answer[field]);
  const found = batch === undefined ? kinds : [answer.accepted, answer.rejected, answer.rejections?.length];
  const expected = batch === undefined ? Array(4).fill('string') : [stored.length, ...batch];
  assert.deepEqual(found, expected, `${name}: ${attempt.text}`);
}

async function send({ ledger, key }: Trial, url: string, hostile: HostileBody): Promise<void> {
  const attempt = await post({ ...hostile, url, key });
  checkAnswer(hostile, attempt);
  if (hostile.stored.length > 0) ledger.note(hostile.stored, attempt);
}

async function sendAll(trial: Trial, bodies: readonly HostileBody[]): Promise<Reached> {
  const gateway = await trial.start('gateway');
  const traffic = trial.openTraffic([gateway]);
  await traffic.flows(5);
  for (let sent = 0; sent < bodies.length; sent += 4)
    await Promise.all(bodies.slice(sent, sent + 4).map((body) => send(trial, gateway.url, body)));
  await traffic.flows(5);
  await traffic.close();
  assert.ok(gateway.isAlive, 'the gateway must not exit');
  assert.ok(await gateway.isReady(), 'the gateway is ready all the same');
  return tally(bodies.map(({ status }) => `bodies answered ${status}`));
}

export const hostileBodies: Scenario = {
  fault: 13,
  title: 'hostile bodies get the error envelope, and valid batches sent at the same time are stored',
  tried: 'hostile bodies among good traffic',
  run: (trial) => sendAll(trial, createHostileBodies(trial)),
};

export const oneBadAmongMany: Scenario = {
  fault: 14,
  title: '99 of a hundred messages are stored when one is invalid, and none of two messages with the same id',
  tried: 'one bad message among 100, two with one id, among good traffic',
  run: (trial) => sendAll(trial, createMixedBodies(trial)),
};
