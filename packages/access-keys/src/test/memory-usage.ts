import {
  HOUR_MINUTES,
  HOUR_MS,
  hoursUpTo,
  type KeyCounts,
  type KeyUsage,
  type KeyUse,
  minutesUpTo,
  NO_USE,
  type Refusal,
} from '../usage/key-usage.ts';

interface Counted {
  uses: number;
  refusals: number;
  messages: number;
}

const NO_COUNTS: Counted = { uses: 0, refusals: 0, messages: 0 };

/** In-memory counts for tests and experiments. Never deletes old counts. */
export function createMemoryKeyUsage({ wallClockMs = Date.now }: { wallClockMs?: () => number } = {}): KeyUsage {
  const minutes = new Map<string, Counted>();
  const hours = new Map<string, number>();
  const environments = new Map<string, { accepted: number; rejected: number }>();
  const lastUses = new Map<string, number>();
  const lastRefusals = new Map<string, Refusal>();

  const addKey = (minuteAt: number, { keyId, uses, refusals, messages, lastUsedAt, lastRefusal }: KeyCounts) => {
    const name = `${minuteAt} ${keyId}`;
    const sum = minutes.get(name) ?? NO_COUNTS;
    const counted = { uses: sum.uses + uses, refusals: sum.refusals + refusals, messages: sum.messages + messages };
    minutes.set(name, counted);
    const hour = `${Math.floor(minuteAt / HOUR_MS) * HOUR_MS} ${keyId}`;
    hours.set(hour, (hours.get(hour) ?? 0) + messages);
    lastUses.set(keyId, Math.max(lastUses.get(keyId) ?? 0, lastUsedAt));
    if (lastRefusal !== null && lastRefusal.at >= (lastRefusals.get(keyId)?.at ?? 0))
      lastRefusals.set(keyId, lastRefusal);
  };
  const useOf = (keyId: string): KeyUse => {
    const counted = minutesUpTo(wallClockMs(), HOUR_MINUTES).map((minuteAt) => minutes.get(`${minuteAt} ${keyId}`));
    return {
      ...NO_USE,
      lastUsedAt: lastUses.get(keyId) ?? null,
      usesOfHour: counted.reduce((sum, minute) => sum + (minute?.uses ?? 0), 0),
      refusalsOfHour: counted.reduce((sum, minute) => sum + (minute?.refusals ?? 0), 0),
      messagesOfHour: counted.reduce((sum, minute) => sum + (minute?.messages ?? 0), 0),
      messagesOfDay: hoursUpTo(wallClockMs()).reduce((sum, hourAt) => sum + (hours.get(`${hourAt} ${keyId}`) ?? 0), 0),
      lastRefusal: lastRefusals.get(keyId) ?? null,
    };
  };
  return {
    add: async ({ minuteAt, keys, environments: added }) => {
      for (const key of keys) addKey(minuteAt, key);
      for (const { environmentId, accepted, rejected } of added) {
        const name = `${minuteAt} ${environmentId}`;
        const sum = environments.get(name) ?? { accepted: 0, rejected: 0 };
        environments.set(name, { accepted: sum.accepted + accepted, rejected: sum.rejected + rejected });
      }
    },
    readKeys: async (keyIds) => new Map(keyIds.map((keyId) => [keyId, useOf(keyId)])),
    readEnvironments: async (environmentIds, count) => {
      const wanted = minutesUpTo(wallClockMs(), count);
      const minuteOf = (environmentId: string, minuteAt: number) => ({
        minuteAt,
        ...(environments.get(`${minuteAt} ${environmentId}`) ?? { accepted: 0, rejected: 0 }),
      });
      return new Map(environmentIds.map((id) => [id, wanted.map((minuteAt) => minuteOf(id, minuteAt))]));
    },
  };
}
