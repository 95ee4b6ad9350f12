/** Evaluates the rules about projects every half minute, in one portal process at a time. */
import { createHash, randomUUID } from 'node:crypto';
import { type AuditEntry, type AuditLog, nextPoll, type ProjectRecord } from '@playline/access-keys';
import { type AlertChange, type AlertStore, advance, type Findings, type RecordableFailure } from '@playline/alerts';
import type { Metrics } from '@playline/runtime';
import { waitAtMost } from '@playline/stores';
import type { AlertDelivery } from './delivery.ts';

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
/** Webhooks that do not respond delay the deliveries to others only if there are this many of them. */
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
  const failedAt = Date.now();
  const unrecorded: RecordableFailure[] = [];
  for (const failure of [...change.failures, ...(failures ?? []).map((failed) => ({ ...failed, failedAt }))])
    if (!(await record(parts, toFailureEntry(change, failure)))) unrecorded.push(failure);
  // While the process is closing, a delivery is not repeated. Another process repeats it.
  const isDelivered = failures !== null;
  const isDone = isDelivered && isRecorded && unrecorded.length === 0;
  const remaining = isDone ? null : { ...change, isDelivered, isRecorded, failures: unrecorded };
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

function toEntry({ id, state, rule, projectId, environmentId, text, value, changedAt }: AlertChange): AuditEntry {
  const scope = { projectId, environmentId, address: '', requestId: id, actor: '' };
  const action = `alert.${state}`;
  const identity = { entryId: toUuid(id, action), happenedAt: changedAt };
  return { ...scope, action, object: rule, detail: { text, value }, identity };
}

function toFailureEntry(change: AlertChange, { channel, reason, failedAt }: RecordableFailure): AuditEntry {
  const action = 'alert.delivery-failed';
  const identity = { entryId: toUuid(change.id, action, channel), happenedAt: failedAt };
  return { ...toEntry(change), action, detail: { channel, reason, of: change.state }, identity };
}

/** Returns the same UUID for the same parts, so that the audit log merges an entry that is appended again. */
function toUuid(...parts: readonly string[]): string {
  const hash = createHash('sha256').update(parts.join(':')).digest('hex');
  return [
    hash.slice(0, 8),
    hash.slice(8, 12),
    `8${hash.slice(13, 16)}`,
    `a${hash.slice(17, 20)}`,
    hash.slice(20, 32),
  ].join('-');
}
