/** Evaluates the rules about projects every half minute, in one portal process at a time. */
import { randomUUID } from 'node:crypto';
import { type AuditEntry, type AuditLog, nextPoll, type ProjectRecord } from '@playline/access-keys';
import { type AlertChange, type AlertStore, advance, type Findings } from '@playline/alerts';
import type { Metrics } from '@playline/runtime';
import { waitAtMost } from '@playline/stores';
import type { AlertDelivery, FailedDelivery } from './delivery.ts';

export interface EvaluatorParts {
  readonly store: AlertStore;
  readonly findAlerts: (nowMs: number, signal: AbortSignal) => Promise<Findings>;
  readonly projects: { all(): Promise<readonly ProjectRecord[]> };
  readonly delivery: Pick<AlertDelivery, 'deliver'>;
  readonly audit: AuditLog;
  readonly metrics: Pick<Metrics, 'counter'>;
  readonly onFault: (fault: unknown, message: string) => void;
  /** Defaults to `EVERY_MS`. */
  readonly everyMs?: number;
}

const EVERY_MS = 30_000;
/** A turn ends before the next evaluation of the same process, which may otherwise be refused. */
const TURN_SHARE = 0.9;
/** If a webhook does not respond, it delays others less than the retries of all of them. */
const CONCURRENT_DELIVERIES = 8;
const AUDIT_MAX_MS = 10_000;

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
  let delivering: Promise<unknown> | null = null;
  const runUntilClosed = async () => {
    let failures = 0;
    while (!closed.signal.aborted) {
      try {
        await evaluate();
        failures = 0;
        // Deliveries do not delay the next evaluation.
        delivering ??= deliverDue(parts, closed.signal).finally(() => {
          delivering = null;
        });
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
      await delivering;
    },
  };
}

/** Delivers the changes of all processes, so that no change is lost if a process exits. */
async function deliverDue(parts: EvaluatorParts, closed: AbortSignal): Promise<void> {
  const work = async () => {
    while (!closed.aborted) {
      const change = await parts.store.claim(Date.now());
      if (change === null) return;
      await settle(parts, change, closed);
    }
  };
  const works = Array.from({ length: CONCURRENT_DELIVERIES }, work);
  const failed = (await Promise.allSettled(works)).find((result) => result.status === 'rejected');
  if (failed !== undefined) parts.onFault(failed.reason, 'cannot deliver the alerts of projects; retrying');
}

async function settle(parts: EvaluatorParts, change: AlertChange, closed: AbortSignal): Promise<void> {
  const { store, projects, delivery } = parts;
  const project = (await projects.all()).find(({ id }) => id === change.projectId);
  const deliver = async () =>
    change.isDelivered || project === undefined ? [] : delivery.deliver(change, project, closed);
  const [failures, isRecorded] = await Promise.all([deliver(), change.isRecorded || record(parts, toEntry(change))]);
  for (const failure of failures ?? []) await record(parts, toFailureEntry(change, failure));
  // While the process is closing, a delivery is not repeated. Another process repeats it.
  const isDelivered = failures !== null;
  const remaining = isDelivered && isRecorded ? null : { ...change, isDelivered, isRecorded };
  await store.settle(change, remaining, Date.now());
}

/** Returns false if Kafka has not confirmed the entry, which must not delay the delivery. */
async function record({ audit, onFault }: EvaluatorParts, entry: AuditEntry): Promise<boolean> {
  const appended = audit.append(entry).then(() => true);
  try {
    return await waitAtMost(AUDIT_MAX_MS, appended, () => false);
  } catch (fault) {
    onFault(fault, 'cannot record an alert; retrying');
    return false;
  }
}

function toEntry({ id, state, rule, projectId, environmentId, text, value }: AlertChange): AuditEntry {
  const scope = { projectId, environmentId, address: '', requestId: id, actor: '' };
  return { ...scope, action: `alert.${state}`, object: rule, detail: { text, value } };
}

function toFailureEntry(change: AlertChange, { channel, reason }: FailedDelivery): AuditEntry {
  return { ...toEntry(change), action: 'alert.delivery-failed', detail: { channel, reason, of: change.state } };
}
