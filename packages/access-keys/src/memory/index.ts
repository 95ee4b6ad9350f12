import type { KeyRecord, KeyStore } from '../key-store.ts';

/** Key records in this process, for tests and for trying things out. */
export function createMemoryKeyStore(): KeyStore {
  const records = new Map<string, KeyRecord>();
  const live = new Map<string, string>();
  return {
    find: async (hash) => records.get(hash) ?? null,
    findLive: async (environmentId, kind) => records.get(live.get(`${kind} ${environmentId}`) ?? '') ?? null,
    replace: async (ended, added) => {
      const subject = added ?? ended;
      if (subject === null) return true;
      const slot = `${subject.kind} ${subject.environmentId}`;
      if (live.get(slot) !== ended?.hash) return false;
      if (ended !== null) records.set(ended.hash, ended);
      if (added !== null) records.set(added.hash, added);
      if (added === null) live.delete(slot);
      else live.set(slot, added.hash);
      return true;
    },
    list: async (projectId) => [...records.values()].filter((record) => record.projectId === projectId),
  };
}
