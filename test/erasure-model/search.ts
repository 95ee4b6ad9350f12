/** A state with the step that led to it. */
export type NamedState<S> = readonly [step: string, state: S];

/** A system of concurrent steps. States are plain data and are compared by their JSON. */
export interface System<S> {
  readonly start: S;
  /** All states that one step of any actor can produce. */
  next(state: S): readonly NamedState<S>[];
  /** Describes the fault in a state, or returns null. */
  faultOf(state: S): string | null;
  /** Describes the fault in a final state, in which no actor can take a step, or returns null. */
  faultAtEnd(state: S): string | null;
}

export interface SearchResult {
  readonly states: number;
  readonly ends: number;
  /** All faults, each with a shortest sequence of steps that causes it. */
  readonly faults: ReadonlyMap<string, readonly string[]>;
}

export const NEVER_ENDS = 'the protocol may never end';

/**
 * Visits all reachable states. A state from which no final state is reachable is a fault.
 * @param isSought returns true to stop the search at a fault
 */
export function search<S>(system: System<S>, isSought = (_fault: string): boolean => false): SearchResult {
  const indexes = new Map([[JSON.stringify(system.start), 0]]);
  const states = [system.start];
  /** Predecessors of each state. The first predecessor is on a shortest path. */
  const predecessors: number[][] = [[]];
  const steps = [''];
  const ends: number[] = [];
  const faults = new Map<string, readonly string[]>();
  const recordFault = (fault: string | null, index: number) => {
    if (fault !== null && !faults.has(fault)) faults.set(fault, traceTo(index, predecessors, steps));
  };
  for (let index = 0; index < states.length && ![...faults.keys()].some(isSought); index++) {
    const state = states[index] as S;
    recordFault(system.faultOf(state), index);
    const following = system.next(state);
    if (following.length === 0) {
      ends.push(index);
      recordFault(system.faultAtEnd(state), index);
    }
    for (const [step, each] of following) {
      const name = JSON.stringify(each);
      const known = indexes.get(name) ?? states.length;
      if (known === states.length) {
        indexes.set(name, known);
        states.push(each);
        predecessors.push([]);
        steps.push(step);
      }
      predecessors[known]?.push(index);
    }
  }
  if (![...faults.keys()].some(isSought)) {
    const ended = reachedFrom(ends, predecessors);
    recordFault(
      states.length > ended.size ? NEVER_ENDS : null,
      states.findIndex((_, index) => !ended.has(index)),
    );
  }
  return { states: states.length, ends: ends.length, faults };
}

/** Finds the states from which a final state is reachable. */
function reachedFrom(ends: readonly number[], predecessors: readonly (readonly number[])[]): Set<number> {
  const reached = new Set(ends);
  for (const index of reached) for (const origin of predecessors[index] ?? []) reached.add(origin);
  return reached;
}

/** Returns a shortest sequence of steps that leads to a state. The search is breadth-first. */
function traceTo(index: number, predecessors: readonly (readonly number[])[], steps: readonly string[]): string[] {
  const trace: string[] = [];
  for (let at = index; at > 0; at = predecessors[at]?.[0] as number) trace.unshift(steps[at] as string);
  return trace;
}
