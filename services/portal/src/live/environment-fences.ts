import type { FenceSet } from '@playline/erasure';

/** The fences of erased people of one environment, refreshed until closed. */
export type OpenFences = (environmentId: string) => FenceSet & { close(): Promise<void> };

/** Fences of the environments with subscribers. */
export interface EnvironmentFences {
  enter(environmentId: string): void;
  leave(environmentId: string): Promise<void>;
  /** Undefined without subscribers. */
  of(environmentId: string): FenceSet | undefined;
  /** Environments whose erased people are unknown. While there are any, the log is not read. */
  unknown(): string[];
  stateOf(environmentId: string): { readonly isKnown: boolean; readonly trouble: string };
}

interface OpenSet {
  readonly set: ReturnType<OpenFences>;
  readonly openedMs: number;
  wasLoaded: boolean;
}

/** A first read takes milliseconds; longer than this counts as an outage. */
const FIRST_READ_MS = 5_000;
const FENCES_UNREADABLE =
  'The list of erased people cannot be read, so no messages are shown. This view resumes automatically.';

export function createEnvironmentFences(openFences: OpenFences): EnvironmentFences {
  const sets = new Map<string, OpenSet>();
  const isLoaded = (fences: OpenSet) => {
    const { loaded } = fences.set;
    if (loaded) fences.wasLoaded = true;
    return loaded;
  };
  return {
    enter(environmentId) {
      if (sets.has(environmentId)) return;
      sets.set(environmentId, { set: openFences(environmentId), openedMs: performance.now(), wasLoaded: false });
    },
    async leave(environmentId) {
      const closing = sets.get(environmentId);
      sets.delete(environmentId);
      await closing?.set.close();
    },
    of: (environmentId) => sets.get(environmentId)?.set,
    unknown: () => [...sets].filter(([, fences]) => !isLoaded(fences)).map(([id]) => id),
    stateOf(environmentId) {
      const fences = sets.get(environmentId);
      if (fences === undefined || isLoaded(fences)) return { isKnown: true, trouble: '' };
      const isLate = fences.wasLoaded || performance.now() - fences.openedMs > FIRST_READ_MS;
      return { isKnown: false, trouble: isLate ? FENCES_UNREADABLE : '' };
    },
  };
}
