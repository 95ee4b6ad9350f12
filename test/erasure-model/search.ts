/** A state with the step that led to it. */
export type Named<S> = readonly [step: string, state: S];

/** A system whose steps may run in any order. States are plain data; states with equal JSON are equal. */
export interface System<S> {
  readonly start: S;
  /** Every state that one step of any actor may lead to. */
  next(state: S): readonly Named<S>[];
  /** The fault of a state; null when there is none. */
  faultOf(state: S): string | null;
  /** The fault of a final state, in which no actor can take a step; null when there is none. */
  faultAtEnd(state: S): string | null;
}

export interface Searched {
  /** Number of different states that can be reached. */
  readonly states: number;
  /** Number of states in which no actor can take a step. */
  readonly ends: number;
  /** Each fault, with a shortest sequence of steps that causes it. */
  readonly faults: ReadonlyMap<string, readonly string[]>;
}

export const NEVER_ENDS = 'the protocol may never end';

/**
 * Visits every state that any order of steps can reach. A state from which no final state can be reached is a fault.
 * @param isSought returns true for a fault that ends the search
 */
export function search<S>(system: System<S>, isSought = (_fault: string): boolean => false): Searched {
  const indexes = new Map([[JSON.stringify(system.start), 0]]);
  const states = [system.start];
  /** For each state, the states from which one step leads to it. The first state is on a shortest path. */
  const origins: number[][] = [[]];
  const steps = [''];
  const ends: number[] = [];
  const faults = new Map<string, readonly string[]>();
  const note = (fault: string | null, index: number) => {
    if (fault !== null && !faults.has(fault)) faults.set(fault, traceTo(index, origins, steps));
  };
  for (let index = 0; index < states.length && ![...faults.keys()].some(isSought); index++) {
    const state = states[index] as S;
    note(system.faultOf(state), index);
    const following = system.next(state);
    if (following.length === 0) {
      ends.push(index);
      note(system.faultAtEnd(state), index);
    }
    for (const [step, each] of following) {
      const name = JSON.stringify(each);
      const known = indexes.get(name) ?? states.length;
      if (known === states.length) {
        indexes.set(name, known);
        states.push(each);
        origins.push([]);
        steps.push(step);
      }
      origins[known]?.push(index);
    }
  }
  if (![...faults.keys()].some(isSought)) {
    const ended = reachedFrom(ends, origins);
    note(
      states.length > ended.size ? NEVER_ENDS : null,
      states.findIndex((_, index) => !ended.has(index)),
    );
  }
  return { states: states.length, ends: ends.length, faults };
}

/** The states from which a final state can be reached. */
function reachedFrom(ends: readonly number[], origins: readonly (readonly number[])[]): Set<number> {
  const reached = new Set(ends);
  for (const index of reached) for (const origin of origins[index] ?? []) reached.add(origin);
  return reached;
}

/** A shortest sequence of steps that leads to a state, because the search is breadth-first. */
function traceTo(index: number, origins: readonly (readonly number[])[], steps: readonly string[]): string[] {
  const trace: string[] = [];
  for (let at = index; at > 0; at = origins[at]?.[0] as number) trace.unshift(steps[at] as string);
  return trace;
}
