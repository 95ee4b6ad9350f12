import type { Differences } from '../simulate/differences.ts';

/** Kinds of differences that a run about a chain can find; each makes the run fail. */
export type ChainDifferenceKind =
  | 'import' // lines were taken, left out or refused otherwise than expected
  | 'missing' // the last acknowledged version of an activity is not served
  | 'doubled' // a version is served at two places, or one place comes twice
  | 'uninvited' // what was refused, replaced before it was published, or never sent, is served
  | 'member' // a member of an activity is not as the model has it
  | 'order' // a place does not come behind the one before, or an earlier version behind a later one
  | 'backwards' // going back shows other places than going forward did
  | 'filter' // a filtered history is not what the model has of it
  | 'token'; // a token is not served as the model has it, or its ETag does not hold

export type ChainDifferences = Differences<ChainDifferenceKind>;
