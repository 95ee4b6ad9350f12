/** Evaluates the rules about projects every half minute, in one portal process at a time. */
import { randomUUID } from 'node:crypto';
import { nextPoll } from '@playline/access-keys';
import { advance, type Findings } from '@playline/alerts';
import type { Metrics } from '@playline/runtime';
import { createDispatcher, type DispatcherParts } from './dispatcher.ts';

export interface EvaluatorParts extends DispatcherParts {
  readonly findAlerts: (nowMs: number, signal: AbortSignal) => Promise<Findings>;
  readonly metrics: Pick<Metrics, 'counter'>;
  /** Defaults to `EVERY_MS`. */
  readonly everyMs?: number;
}

const EVERY_MS = 30_000;
/** A turn ends before the next evaluation of the same process, which may otherwise be refused. */
const TURN_SHARE = 0.9;

export function openAlertEvaluator(parts: EvaluatorParts): { close(): Promise<void> } {
  const { store, findAlerts, onFault, everyMs = EVERY_MS } = parts;
  const owner = randomUUID();
  const closed = new AbortController();
  const evaluations = parts.metrics.counter<'outcome'>(
    'playline_portal_alert_evaluations_total',
    'Evaluations of the alerts of projects by this process',
    ['outcome'],
  );
  const evaluate = async () => {
    const turnMs = Math.floor(TURN_SHARE * everyMs);
    if (!(await store.takeTurn(owner, turnMs))) return;
    const evaluatedAtMs = Date.now();
    const [active, findings] = [await store.read(), await findAlerts(evaluatedAtMs, AbortSignal.timeout(turnMs))];
    const isWritten = await store.write(owner, advance(active, findings, evaluatedAtMs), evaluatedAtMs);
    evaluations.inc({ outcome: isWritten ? 'completed' : 'too late' });
  };
  const dispatcher = createDispatcher(parts, closed.signal);
  const runUntilClosed = async () => {
    let failures = 0;
    while (!closed.signal.aborted) {
      try {
        await evaluate();
        failures = 0;
        dispatcher.start();
      } catch (fault) {
        evaluations.inc({ outcome: 'failed' });
        failures += 1;
        // Logs an outage once. The first evaluation of a new process fails until its records are in sync.
        if (failures === 2) onFault(fault, 'cannot evaluate the alerts of projects; retrying');
      }
      await nextPoll(everyMs, closed.signal);
    }
  };
  const running = runUntilClosed();
  return {
    close: async () => {
      closed.abort();
      await running;
      await dispatcher.settled();
    },
  };
}
