import type { ErasureHold, ErasureHolds, HoldName } from '../holds.ts';

/** Holds in this process, for tests. */
export interface MemoryErasureHolds extends ErasureHolds {
  /** Cut-off up to which links of an identity are not held back; null when nothing holds it. */
  cutoffOf(environmentId: string, key: Buffer): number | null;
}

const nameOf = ({ environmentId, erasureId }: HoldName) => `${environmentId} ${erasureId.toString('hex')}`;

export function openMemoryErasureHolds(): MemoryErasureHolds {
  const holds = new Map<string, ErasureHold>();
  const isLapsed = ({ lapsesAtMs }: ErasureHold, nowMs: number) => lapsesAtMs !== null && lapsesAtMs <= nowMs;
  return {
    place: async (hold) => void holds.set(nameOf(hold), hold),
    confirm: async (name) => {
      const hold = holds.get(nameOf(name));
      if (hold === undefined) return false;
      holds.set(nameOf(name), { ...hold, lapsesAtMs: null });
      return true;
    },
    release: async (name) => void holds.delete(nameOf(name)),
    dropLapsed: async (nowMs) => {
      const lapsed = [...holds].filter(([, hold]) => isLapsed(hold, nowMs));
      for (const [name] of lapsed) holds.delete(name);
      return lapsed.length;
    },
    cutoffOf: (environmentId, key) => {
      const own = [...holds.values()].filter((hold) => hold.environmentId === environmentId);
      const cutoffs = own.filter(({ keys }) => keys.some((held) => held.equals(key))).map(({ cutoffMs }) => cutoffMs);
      return cutoffs.length === 0 ? null : Math.max(...cutoffs);
    },
    close: async () => {},
  };
}
