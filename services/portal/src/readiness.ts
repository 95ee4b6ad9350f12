import type { ReadinessChecks } from '@playline/http';

export interface ReadinessParts {
  /** What every page needs: who is signed in, and what they may. */
  readonly sessions: { ready(): Promise<boolean> };
  /** False from the start of a drain. */
  readonly accepting: () => boolean;
}

/** Builds the answer to `/readyz`: without sessions nobody is let in. */
export function createReadiness({ sessions, accepting }: ReadinessParts): ReadinessChecks {
  return { accepting, sessions: sessions.ready };
}

/**
 * What it may lack and still show pages: without brokers nothing can be changed; and of records whose log cannot be read
 * nothing can be changed either, nor would they come back into an emptied Redis.
 */
export function createDegraded(
  producer: { ready(): Promise<boolean> },
  records: Readonly<Record<string, { readonly isInSync: boolean }>>,
): ReadinessChecks {
  const inSync = Object.entries(records).map(([name, kind]) => [name, () => kind.isInSync] as const);
  return { changes: () => producer.ready(), ...Object.fromEntries(inSync) };
}
