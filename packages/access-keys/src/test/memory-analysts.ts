import type { AnalystStore, OwnedAnalyst } from '../analysts/credentials.ts';

/** Database credentials in memory. Passwords contain the account names. */
export function createMemoryAnalysts(): AnalystStore {
  const accounts = new Map<string, OwnedAnalyst>();
  let count = 0;
  return {
    list: async () => [...accounts.values()],
    create: async ({ owner, rawIds }) => {
      count += 1;
      const account = `analyst_${rawIds ? 'raw_' : ''}${count}`;
      const grants = { environments: [], partlyGranted: [], since: '' };
      accounts.set(account, { account, owner, rawIds, ...grants, createdAt: Date.now() + count });
      return { account, password: `secret-of-${account}` };
    },
    setGrant: async (account, { environmentId, revoked }) => {
      const found = accounts.get(account)!;
      const others = found.environments.filter((id) => id !== environmentId);
      accounts.set(account, { ...found, environments: revoked ? others : [...others, environmentId].toSorted() });
    },
    drop: async (account) => void accounts.delete(account),
  };
}
