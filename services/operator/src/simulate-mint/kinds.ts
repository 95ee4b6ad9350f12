import type { Differences } from '../simulate/differences.ts';

/** Kinds of differences that a run about mints can find; each makes the run fail. */
export type MintDifferenceKind =
  | 'answer' // a call was answered otherwise than expected
  | 'list' // pages are out of order, doubled, or hold what does not belong there
  | 'missing' // what was accepted is not shown
  | 'open' // neither a token nor a failure when the patience was over
  | 'outcome' // a token where a failure was expected, a failure where a token was, or one in other words
  | 'member' // a member of a mint request is not as it was asked for
  | 'uninvited' // what was refused, or never asked for, is shown, stored or minted
  | 'role' // something came to an end while the signer had no MINTER_ROLE, or the minter did not say that it waits
  | 'chain' // the chain does not have a token as its mint request says, or has it twice
  | 'row' // the rows of mint_requests say otherwise than the interface
  | 'history' // the activity history says otherwise than the chain
  | 'metadata'; // metadata is not stored as it was given last

export type MintDifferences = Differences<MintDifferenceKind>;
