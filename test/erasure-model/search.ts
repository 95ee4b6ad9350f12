/** A system of steps that may come in any order. States are plain data: two that print the same are one. */
export interface System<S> {
  readonly start: S;
  /** Every state that one step of anybody may lead to. */
  next(state: S): readonly S[];
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
  /** What is wrong, and in how many states. */
  readonly faults: ReadonlyMap<string, number>;
}

export const NEVER_ENDS = 'it may never end';

/** Visits every state that any order of steps can reach. One from which no end can be reached is a fault as well. */
export function search<S>(system: System<S>): Searched {
  const places = new Map([[JSON.stringify(system.start), 0]]);
  const states = [system.start];
  /** By place, the places from which a step leads there. */
  const origins: number[][] = [[]];
  const ends: number[] = [];
  const faults = new Map<string, number>();
  const note = (fault: string | null, count = 1) => {
    if (fault !== null && count > 0) faults.set(fault, (faults.get(fault) ?? 0) + count);
  };
  for (let place = 0; place < states.length; place++) {
    const state = states[place] as S;
    note(system.faultOf(state));
    const following = system.next(state);
    if (following.length === 0) {
      ends.push(place);
      note(system.faultAtEnd(state));
    }
    for (const each of following) {
      const name = JSON.stringify(each);
      const known = places.get(name) ?? states.length;
      if (known === states.length) {
        places.set(name, known);
        states.push(each);
        origins.push([]);
      }
      origins[known]?.push(place);
    }
  }
  note(NEVER_ENDS, states.length - countFrom(ends, origins));
  return { states: states.length, ends: ends.length, faults };
}

/** How many places there are from which one of the ends can be reached. */
function countFrom(ends: readonly number[], origins: readonly (readonly number[])[]): number {
  const reached = new Set(ends);
  for (const place of reached) for (const origin of origins[place] ?? []) reached.add(origin);
  return reached.size;
}
