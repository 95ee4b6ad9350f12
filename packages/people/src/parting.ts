import type { Member } from './graph.ts';
import type { Household } from './person.ts';

/** The two sides of a split: who leaves a person and who stays. */
export interface Parting {
  readonly personKey: Buffer;
  readonly gone: readonly Member[];
  readonly stayed: readonly Member[];
}

/** Why nothing can be split, for people. */
export const NO_PARTING = {
  strangers: 'They are not of one person: only what is wrongly together can be split.',
  alone: 'Nobody has linked it: it is a person of its own already.',
  everybody: 'That is everybody of the person: there is nothing to split.',
} as const;
export type NoParting = keyof typeof NO_PARTING;

/**
 * Who would leave and who would stay if these were split off.
 * @param keys the first is the one whose person `household` is
 */
export function toParting(keys: readonly Buffer[], { personKey, members }: Household): Parting | NoParting {
  const isNamed = ({ key }: Pick<Member, 'key'>) => keys.some((one) => one.equals(key));
  const gone = members.filter(isNamed);
  const stayed = members.filter((member) => !isNamed(member));
  const isStrange = (key: Buffer, at: number) =>
    at > 0 && !key.equals(keys[0]!) && !members.some((one) => one.key.equals(key));
  if (keys.some(isStrange)) return 'strangers';
  if (members.length === 0) return 'alone';
  return stayed.length === 0 ? 'everybody' : { personKey, gone, stayed };
}
