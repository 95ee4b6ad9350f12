import type { IdentityKind } from '@playline/contracts';
import type { Applied } from '../graph.ts';

export interface MemberState {
  kind: IdentityKind;
  linkedAt: number;
}

/** One environment of the model; identity keys are hexadecimal, so that their text sorts as their bytes do. */
export interface EnvironmentState {
  roots: Map<string, string>;
  members: Map<string, Map<string, MemberState>>;
  fences: Map<string, number>;
  holds: Map<string, number>;
  outbox: Map<string, Applied>;
}

export function createEnvironment(): EnvironmentState {
  return { roots: new Map(), members: new Map(), fences: new Map(), holds: new Map(), outbox: new Map() };
}

/** Takes an identity out of its component and returns what was known of it. */
export function removeMember(state: EnvironmentState, key: string): MemberState | undefined {
  const root = state.roots.get(key);
  const members = root === undefined ? undefined : state.members.get(root);
  const known = members?.get(key);
  members?.delete(key);
  if (members?.size === 0) state.members.delete(root!);
  return known;
}
