import { type ApplyOutcome, type ConsentStore, isLater, type PlacedConsent, type StoredConsent } from '../consents.ts';
import { MissingEpochFault } from '../faults.ts';

/** Consents in this process, for tests. */
export interface MemoryConsentStore extends ConsentStore {
  /** Erasure: changes of this identity received up to the cut-off (epoch milliseconds) are not taken. */
  fence(environmentId: string, identityKey: Buffer, cutoffMs: number): void;
  /** As a store that has lost its content. */
  loseEpoch(): void;
}

const nameOf = (environmentId: string, identityKey: Buffer) => `${environmentId} ${identityKey.toString('hex')}`;

export function openMemoryConsentStore(): MemoryConsentStore {
  const consents = new Map<string, StoredConsent>();
  const fences = new Map<string, number>();
  let epoch = true;
  const needEpoch = () => {
    if (!epoch) throw new MissingEpochFault();
  };
  const put = ({ environmentId, identityKey, status, receivedAt, place }: PlacedConsent): ApplyOutcome => {
    const name = nameOf(environmentId, identityKey);
    if (receivedAt <= (fences.get(name) ?? Number.NEGATIVE_INFINITY)) return 'fenced';
    const stored = consents.get(name);
    if (stored !== undefined && !isLater(place, stored.place)) return 'superseded';
    consents.set(name, { status, place });
    return 'applied';
  };
  return {
    apply: async (change) => {
      needEpoch();
      return put(change);
    },
    read: async (environmentId, identityKey) => {
      needEpoch();
      return consents.get(nameOf(environmentId, identityKey)) ?? null;
    },
    load: async (changes) => changes.map(put),
    standing: async () => ({ run: 'this process', isCurrent: true, applied: new Map() }),
    markCurrent: async () => true,
    forget: async (environmentId, identityKeys) => {
      for (const key of identityKeys) consents.delete(nameOf(environmentId, key));
    },
    fence: (environmentId, identityKey, cutoffMs) => void fences.set(nameOf(environmentId, identityKey), cutoffMs),
    loseEpoch: () => {
      epoch = false;
    },
    ready: async () => epoch,
    close: async () => {},
  };
}
