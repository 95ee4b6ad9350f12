import {
  HOUR_MINUTES,
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
}

/** In-memory counts for tests and experiments. Never deletes old counts. */
export function createMemoryKeyUsage({ wallClockMs = Date.now }: { wallClockMs?: () => number } = {}): KeyUsage {
  const minutes = new Map<string, Counted>();
  const environments = new Map<string, { accepted: number; rejected: number }>();
  const lastUses = new Map<string, number>();
  const lastRefusals = new Map<string, Refusal>();

  const addKey = (minuteAt: number, { keyId, uses, refusals, lastUsedAt, lastRefusal }: KeyCounts) => {
    const name = `${minuteAt} ${keyId}`;
    const sum = minutes.get(name) ?? { uses: 0, refusals: 0 };
    minutes.set(name, { uses: sum.uses + uses, refusals: sum.refusals + refusals });
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
