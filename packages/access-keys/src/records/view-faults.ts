/** A run of a store lasts from its start, or its promotion in a failover, to the next one. */
export interface ViewStanding {
  /** Names the present run. */
  readonly run: string;
  /** The run in which the view was complete last; null when it never was, or has lost that too. */
  readonly completeIn: string | null;
}

/** The view may lack changes that were made: whoever has the log brings them in. */
export class IncompleteViewFault extends Error {
  override readonly name = 'IncompleteViewFault';
}

/** The log has a change that the view may not have: whoever has the log brings it in. Until then processes go by the view. */
export class ViewFault extends Error {
  override readonly name = 'ViewFault';
}

/** Somebody else has changed the same record meanwhile, and theirs stands: what was asked for was not done. */
export class Overtaken extends Error {
  override readonly name = 'Overtaken';
}

/** The log holds less than the view has seen of it: more likely a lost log than records that nobody made. */
export class LogLost extends Error {
  override readonly name = 'LogLost';
}
