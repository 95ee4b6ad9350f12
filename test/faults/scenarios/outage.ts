import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { Ledger } from '../world/ledger.ts';
import { type Reached, toSeconds } from '../world/reached.ts';
import type { ServiceProcess } from '../world/service-process.ts';
import { waitFor } from '../world/wait.ts';

/** The gateway promises its first refusal within this time after the brokers are down. */
const FIRST_REFUSAL_MAX_MS = 3_000;
const POLL_EVERY_MS = 100;

/** Watches how late this machine is: the worst delay of an idle request and a timer. */
function watchLateness({ adminUrl }: ServiceProcess) {
  let over = false;
  const faults: unknown[] = [];
  let worstMs = 0;
  let roundBeganAt = performance.now();
  const lateMs = () => performance.now() - roundBeganAt - POLL_EVERY_MS;
  const watch = async () => {
    while (!over) {
      roundBeganAt = performance.now();
      // A new connection each time. A kept one may be closed by the other side while this process is paused.
      const answer = await fetch(`${adminUrl}/livez`, { headers: { connection: 'close' } });
      await answer.arrayBuffer();
      await delay(POLL_EVERY_MS);
      worstMs = Math.max(worstMs, lateMs());
    }
  };
  void watch().catch((error: unknown) => void faults.push(error));
  return {
    worstMs: () => Math.max(worstMs, lateMs()),
    end: () => {
      over = true;
      if (faults.length > 0) throw new Error(`the gateway did not answer /livez (${faults})`);
    },
  };
}

/**
 * Watches requests that begin from now on. No broker can have acknowledged any of them.
 * @param ledger the ledger that the traffic writes
 */
export function watchOutage(gateway: ServiceProcess, ledger: Ledger) {
  const beganAt = performance.now();
  const late = watchLateness(gateway);
  const refusals = () => ledger.attempts.filter(({ endedAt, status }) => endedAt > beganAt && status !== 200);
  return {
    refused: async () => void (await waitFor('a request is refused', () => refusals().length > 0)),
    /** Call it before the broker may answer again. @throws AssertionError when the gateway broke a promise */
    check: (): Reached => {
      const lateMs = late.worstMs();
      assert.ok(gateway.isAlive, 'the gateway must not exit');
      late.end();
      const attempts = ledger.attempts.filter((attempt) => attempt.beganAt > beganAt);
      const statuses = [...new Set(attempts.map(({ status }) => status))].sort();
      const areKnown = statuses.every((status) => status === 500 || status === 429);
      assert.ok(areKnown, `while no broker could acknowledge, requests were answered ${statuses}`);
      const firstMs = Math.round(Math.min(...refusals().map(({ endedAt }) => endedAt)) - beganAt);
      const allowedMs = Math.round(FIRST_REFUSAL_MAX_MS + lateMs);
      assert.ok(firstMs <= allowedMs, `the first refusal arrived after ${firstMs} ms; ${allowedMs} are allowed here`);
      const awayS = toSeconds(performance.now() - beganAt);
      return { 'requests refused': refusals().length, 'first refusal ms': firstMs, 'broker away s': awayS };
    },
  };
}
