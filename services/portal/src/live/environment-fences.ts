import type { FenceSet } from '@playline/erasure';

/** The fences of erased people of one environment; kept fresh until it is closed. */
export type OpenFences = (environmentId: string) => FenceSet & { close(): Promise<void> };

/** Fences of the environments that somebody looks at. */
export interface EnvironmentFences {
  enter(environmentId: string): void;
  /** Nobody looks at it any more. */
  leave(environmentId: string): Promise<void>;
  /** Undefined where nobody looks. */
  of(environmentId: string): FenceSet | undefined;
  /** Whether those of all are known: until then nothing may be read, since it could be shown to nobody. */
  areLoaded(): boolean;
  /** Environments of which it is not known who is erased. */
  unknown(): string[];
  /** Whether it is known, and what to say while it is not. */
  stateOf(environmentId: string): { readonly isKnown: boolean; readonly trouble: string };
}

interface Held {
  readonly set: ReturnType<OpenFences>;
  readonly openedMs: number;
  wasLoaded: boolean;
}

/** A first reading takes milliseconds; one that takes longer than this counts as an outage. */
const FIRST_READ_MS = 5_000;
const FENCES_UNREADABLE = 'It cannot be read who is erased, so nothing is shown. It goes on by itself.';

export function createEnvironmentFences(openFences: OpenFences): EnvironmentFences {
  const held = new Map<string, Held>();
  const isLoaded = (fences: Held) => {
    const { loaded } = fences.set;
    if (loaded) fences.wasLoaded = true;
    return loaded;
  };
  const unknown = () => [...held].filter(([, fences]) => !isLoaded(fences)).map(([id]) => id);
  return {
    enter(environmentId) {
      if (held.has(environmentId)) return;
      held.set(environmentId, { set: openFences(environmentId), openedMs: performance.now(), wasLoaded: false });
    },
    async leave(environmentId) {
      const closing = held.get(environmentId);
      held.delete(environmentId);
      await closing?.set.close();
    },
    of: (environmentId) => held.get(environmentId)?.set,
    areLoaded: () => unknown().length === 0,
    unknown,
    stateOf(environmentId) {
      const fences = held.get(environmentId);
      if (fences === undefined || isLoaded(fences)) return { isKnown: true, trouble: '' };
      const isLate = fences.wasLoaded || performance.now() - fences.openedMs > FIRST_READ_MS;
      return { isKnown: false, trouble: isLate ? FENCES_UNREADABLE : '' };
    },
  };
}
