import {
  type Acknowledgement,
  type ActiveAlert,
  type AlertStore,
  keyOfAlert,
  type PendingDelivery,
  RETRY_MS,
  toDeliveries,
  toFailed,
  toStored,
} from '../../active-alerts.ts';

/** Active alerts in memory, for tests with one process. Always grants the turn. */
export function createMemoryAlerts(): AlertStore {
  const active = new Map<string, ActiveAlert>();
  const acknowledgements = new Map<string, Acknowledgement>();
  const queues = new Map<string, { channel: string; deliveries: PendingDelivery[]; dueAt: number }>();
  let evaluatedAt: number | null = null;
  const nameOf = ({ channel, change }: PendingDelivery) => `${channel} ${change.projectId}`;
  const append = (delivery: PendingDelivery, dueAt: number) => {
    const queue = queues.get(nameOf(delivery)) ?? { channel: delivery.channel, deliveries: [], dueAt };
    queue.deliveries.push(delivery);
    queues.set(nameOf(delivery), queue);
  };
  return {
    takeTurn: async () => true,
    read: async () => [...active].map(([key, alert]) => toStored(alert, acknowledgements.get(key))),
    evaluatedAt: async () => evaluatedAt,
    write: async (_owner, step, nowMs) => {
      evaluatedAt = nowMs;
      for (const alert of step.changed) active.set(keyOfAlert(alert), alert);
      for (const key of step.removed) for (const each of [active, acknowledgements]) each.delete(key);
      for (const delivery of toDeliveries(step)) append(delivery, nowMs);
      return true;
    },
    acknowledge: async (alert, acknowledgement) => void acknowledgements.set(keyOfAlert(alert), acknowledgement),
    claim: async (channel, nowMs) => {
      const queue = [...queues.values()].find((each) => each.channel === channel && each.dueAt <= nowMs);
      if (queue === undefined) return null;
      queue.dueAt = nowMs + RETRY_MS;
      return queue.deliveries[0] ?? null;
    },
    settle: async (delivery, failure, nowMs) => {
      const queue = queues.get(nameOf(delivery));
      if (queue?.deliveries[0] !== delivery) return;
      queue.deliveries.shift();
      queue.dueAt = nowMs;
      if (queue.deliveries.length === 0) queues.delete(nameOf(delivery));
      if (failure !== null) append(toFailed(delivery, failure), nowMs);
    },
  };
}
