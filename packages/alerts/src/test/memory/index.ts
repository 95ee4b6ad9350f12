import {
  type Acknowledgement,
  type ActiveAlert,
  type AlertChange,
  type AlertStore,
  keyOfAlert,
  RETRY_MS,
  toStored,
} from '../../active-alerts.ts';

/** Active alerts in memory, for tests with one process. Always grants the turn. */
export function createMemoryAlerts(): AlertStore {
  const active = new Map<string, ActiveAlert>();
  const acknowledgements = new Map<string, Acknowledgement>();
  const due = new Map<string, { readonly change: AlertChange; readonly at: number }>();
  let evaluatedAt: number | null = null;
  return {
    takeTurn: async () => true,
    read: async () => [...active].map(([key, alert]) => toStored(alert, acknowledgements.get(key))),
    evaluatedAt: async () => evaluatedAt,
    write: async (_owner, { changed, removed, changes }, nowMs) => {
      evaluatedAt = nowMs;
      for (const alert of changed) active.set(keyOfAlert(alert), alert);
      for (const key of removed) for (const each of [active, acknowledgements]) each.delete(key);
      for (const change of changes) due.set(change.id, { change, at: nowMs });
      return true;
    },
    acknowledge: async (alert, acknowledgement) => void acknowledgements.set(keyOfAlert(alert), acknowledgement),
    claim: async (nowMs) => {
      const found = [...due.values()].find(({ at }) => at <= nowMs);
      if (found !== undefined) due.set(found.change.id, { ...found, at: nowMs + RETRY_MS });
      return found?.change ?? null;
    },
    settle: async (change, remaining, nowMs) => {
      if (remaining === null) due.delete(change.id);
      else due.set(change.id, { change: remaining, at: nowMs + RETRY_MS });
    },
  };
}
