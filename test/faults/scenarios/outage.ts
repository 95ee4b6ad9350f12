import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { Ledger } from '../world/ledger.ts';
import type { Attempt } from '../world/post.ts';
import type { ServiceProcess } from '../world/service-process.ts';
import { waitFor } from '../world/wait.ts';

/** The specification of the gateway: the first refusal within this time of the brokers going away. */
const FIRST_REFUSAL_MAX_MS = 3_000;
const LOOK_EVERY_MS = 100;

/** What is seen from outside of a gateway while it has no broker. */
export interface Outage {
  /** Resolves when a request has been refused. */
  refused(): Promise<void>;
  /** Call it before the broker may answer again. @throws AssertionError when the gateway did not behave */
  check(): void;
}

/** How late this machine is: what an idle request and a timer take longer than nothing. */
interface Lateness {
  worstMs: number;
}

async function watchLateness(gateway: ServiceProcess, { isOver }: { isOver: () => boolean }, late: Lateness) {
  while (!isOver()) {
    const beganAt = performance.now();
    await fetch(`${gateway.adminUrl}/livez`).then((answer) => answer.arrayBuffer());
    await delay(LOOK_EVERY_MS);
    late.worstMs = Math.max(late.worstMs, performance.now() - beganAt - LOOK_EVERY_MS);
  }
}

/**
 * Watches requests that begin from now on: no broker can have acknowledged anything of them.
 * @param ledger the one that the traffic writes
 */
export function watchOutage(gateway: ServiceProcess, ledger: Ledger): Outage {
  const beganAt = performance.now();
  const late: Lateness = { worstMs: 0 };
  let over = false;
  const watching = watchLateness(gateway, { isOver: () => over }, late).catch((error) => error as Error);
  void watching;
  const refusals = () => ledger.attempts.filter(({ endedAt, status }) => endedAt > beganAt && status !== 200);
  return {
    refused: async () => void (await waitFor('a request is refused', () => refusals().length > 0)),
    check: () => {
      over = true;
      checkStatuses(ledger.attempts.filter((attempt) => attempt.beganAt > beganAt));
      checkFirst(refusals(), { beganAt, lateMs: late.worstMs });
      assert.ok(gateway.isAlive, 'the gateway must not exit');
    },
  };
}

function checkStatuses(attempts: readonly Attempt[]): void {
  const statuses = [...new Set(attempts.map(({ status }) => status))].sort();
  const known = attempts.every(({ status }) => status === 500 || status === 429);
  assert.ok(known, `while no broker could acknowledge, requests were answered ${statuses}`);
}

function checkFirst(refusals: readonly Attempt[], { beganAt, lateMs }: { beganAt: number; lateMs: number }): void {
  const first = Math.min(...refusals.map(({ endedAt }) => endedAt));
  const tookMs = Math.round(first - beganAt);
  const allowedMs = Math.round(FIRST_REFUSAL_MAX_MS + lateMs);
  assert.ok(tookMs <= allowedMs, `the first refusal came after ${tookMs} ms; ${allowedMs} are allowed here`);
}
