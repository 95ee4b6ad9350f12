/** A state and what led to it, in words. */
export type Named<S> = readonly [words: string, state: S];

/** A system of steps that may come in any order. States are plain data: two that print the same are one. */
export interface System<S> {
  readonly start: S;
  /** Every state that one step of anybody may lead to. */
  next(state: S): readonly Named<S>[];
  /** What is wrong in a state; null when nothing is. */
  faultOf(state: S): string | null;
  /** What is wrong where nobody can take a step any more; null when nothing is. */
  faultAtEnd(state: S): string | null;
}

export interface Searched {
  /** Different states that can be reached. */
  readonly states: number;
  /** Those in which nobody can take a step. */
  readonly ends: number;
  /** What is wrong, and the fewest steps that lead there. */
  readonly faults: ReadonlyMap<string, readonly string[]>;
}

export const NEVER_ENDS = 'it may never end';

/**
 * Visits every state that any order of steps can reach. One from which no end can be reached is a fault as well.
 * @param isSought ends the search at such a fault
 */
export function search<S>(system: System<S>, isSought = (_fault: string): boolean => false): Searched {
  const places = new Map([[JSON.stringify(system.start), 0]]);
  const states = [system.start];
  /** By place, the places from which a step leads there, the first of them by the fewest steps, and that step. */
  const origins: number[][] = [[]];
  const words = [''];
  const ends: number[] = [];
  const faults = new Map<string, readonly string[]>();
  const note = (fault: string | null, place: number) => {
    if (fault !== null && !faults.has(fault)) faults.set(fault, traceTo(place, origins, words));
  };
  for (let place = 0; place < states.length && ![...faults.keys()].some(isSought); place++) {
    const state = states[place] as S;
    note(system.faultOf(state), place);
    const following = system.next(state);
    if (following.length === 0) {
      ends.push(place);
      note(system.faultAtEnd(state), place);
    }
    for (const [step, each] of following) {
      const name = JSON.stringify(each);
      const known = places.get(name) ?? states.length;
      if (known === states.length) {
        places.set(name, known);
        states.push(each);
        origins.push([]);
        words.push(step);
      }
      origins[known]?.push(place);
    }
  }
  if (![...faults.keys()].some(isSought)) {
    const ended = reachedFrom(ends, origins);
    note(
      states.length > ended.size ? NEVER_ENDS : null,
      states.findIndex((_, place) => !ended.has(place)),
    );
  }
  return { states: states.length, ends: ends.length, faults };
}

/** Places from which one of the ends can be reached. */
function reachedFrom(ends: readonly number[], origins: readonly (readonly number[])[]): Set<number> {
  const reached = new Set(ends);
  for (const place of reached) for (const origin of origins[place] ?? []) reached.add(origin);
  return reached;
}

/** States are found by the fewest steps first. */
function traceTo(place: number, origins: readonly (readonly number[])[], words: readonly string[]): string[] {
  const trace: string[] = [];
  for (let at = place; at > 0; at = origins[at]?.[0] as number) trace.unshift(words[at] as string);
  return trace;
}
