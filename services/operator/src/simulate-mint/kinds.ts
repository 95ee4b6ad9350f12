import type { Differences } from '../simulate/differences.ts';

/** Kinds of differences that a run about mints can find; each makes the run fail. */
export type MintDifferenceKind =
  | 'answer' // a call did not get the expected answer
  | 'list' // pages are out of order, have duplicates, or requests that do not belong there
  | 'missing' // an accepted request is not shown
  | 'open' // neither a token nor a failure at the end of the wait
  | 'outcome' // a token instead of a failure, a failure instead of a token, or another error
  | 'member' // a member of a mint request is not shown as it was requested
  | 'uninvited' // a refused asset, or one that was never requested, is shown, stored or minted
  | 'role' // a request ended while the signer had no MINTER_ROLE, or the minter did not report that it waits
  | 'chain' // the chain lacks the token of a mint request, has it differently, or has it twice
  | 'row' // the rows of mint_requests differ from the interface
  | 'history' // the activity history differs from the chain
  | 'metadata'; // the stored metadata is not what was sent last

export type MintDifferences = Differences<MintDifferenceKind>;
