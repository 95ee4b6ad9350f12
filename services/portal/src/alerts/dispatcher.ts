/** Sends pending deliveries of all processes: in order to each channel of a project, and concurrently to different channels. */
import { createHash } from 'node:crypto';
import type { AuditEntry, AuditLog, ProjectRecord } from '@playline/access-keys';
import {
  ALERT_CHANNELS,
  type AlertChange,
  type AlertChannel,
  type AlertStore,
  type DeliveryFailure,
  type PendingDelivery,
} from '@playline/alerts';
import { waitAtMost } from '@playline/stores';
import type { AlertDelivery } from './delivery.ts';

export interface DispatcherParts {
  readonly store: AlertStore;
  readonly projects: { all(): Promise<readonly ProjectRecord[]> };
  readonly delivery: Pick<AlertDelivery, 'deliver'>;
  readonly audit: AuditLog;
  readonly onFault: (fault: unknown, message: string) => void;
}

/** Webhooks that do not respond delay other webhooks only if there are this many. Mail servers limit connections of a client. */
const CONCURRENT_MAX: Readonly<Record<AlertChannel, number>> = { audit: 8, webhook: 64, 'e-mail': 8 };
const AUDIT_MAX_MS = 10_000;

export function createDispatcher(parts: DispatcherParts, closed: AbortSignal) {
  const running = new Map(ALERT_CHANNELS.map((channel) => [channel, new Set<Promise<void>>()]));
  /** Returns false if no delivery is due. */
  const dispatchNext = async (channel: AlertChannel): Promise<boolean> => {
    const delivery = await parts.store.claim(channel, Date.now());
    if (delivery === null) return false;
    start(channel);
    await dispatch(parts, delivery, closed);
    return true;
  };
  const start = (channel: AlertChannel): void => {
    const runs = running.get(channel)!;
    if (closed.aborted || runs.size >= CONCURRENT_MAX[channel]) return;
    const onFault = (fault: unknown) => {
      parts.onFault(fault, 'cannot deliver the alerts of projects; retrying');
      return false;
    };
    const run = dispatchNext(channel)
      .catch(onFault)
      .then((isFound) => {
        runs.delete(run);
        if (isFound) start(channel);
      });
    runs.add(run);
  };
  return {
    /** Sends the deliveries that are due, without waiting for them. */
    start: () => {
      for (const channel of ALERT_CHANNELS) start(channel);
    },
    /** Waits for the deliveries that were started before `closed` was aborted. */
    settled: async () => void (await Promise.all([...running.values()].flatMap((runs) => [...runs]))),
  };
}

/** A delivery that is not settled is repeated later. */
async function dispatch(parts: DispatcherParts, pending: PendingDelivery, closed: AbortSignal): Promise<void> {
  const { store, projects, delivery } = parts;
  const { channel, change, failure } = pending;
  if (channel === 'audit') {
    if (await record(parts, failure === null ? toEntry(change) : toFailureEntry(change, failure)))
      await store.settle(pending, null, Date.now());
    return;
  }
  const project = (await projects.all()).find(({ id }) => id === change.projectId);
  const reason = project === undefined ? null : await delivery.deliver(pending, project, closed);
  // While the process is closing, not all attempts are made. Another process repeats the delivery.
  if (reason !== null && closed.aborted) return;
  const failedAt = Date.now();
  await store.settle(pending, reason === null ? null : { channel, reason, failedAt }, failedAt);
}

/** Returns false if Kafka has not confirmed the entry. */
async function record({ audit, onFault }: DispatcherParts, entry: AuditEntry): Promise<boolean> {
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

function toFailureEntry(change: AlertChange, { channel, reason, failedAt }: DeliveryFailure): AuditEntry {
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
