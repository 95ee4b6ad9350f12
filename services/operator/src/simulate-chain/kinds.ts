import type { Differences } from '../simulate/differences.ts';

/** Kinds of differences that a run about a chain can find; each makes the run fail. */
export type ChainDifferenceKind =
  | 'import' // the numbers of accepted, left out or refused lines are not as expected
  | 'missing' // the last acknowledged version of an activity is not served
  | 'doubled' // a version is served at two places, or one place is served twice
  | 'uninvited' // a line that was refused, replaced before publishing, or never sent is served
  | 'member' // a member of an activity differs from the model
  | 'order' // a place does not come after the one before, or an earlier version after a later one
  | 'backwards' // reading backwards shows other places than reading forwards
  | 'filter' // a filtered history differs from the model
  | 'token'; // a token differs from the model, or its ETag is wrong

export type ChainDifferences = Differences<ChainDifferenceKind>;
