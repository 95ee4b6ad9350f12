/** A run of a store lasts from its start, or its promotion in a failover, to the next one. */
export interface ViewStanding {
  /** Names the present run. */
  readonly run: string;
  /** The run in which the view was complete last; null when it never was, or has lost that too. */
  readonly completeIn: string | null;
}

/** The view may lack changes. They can be restored from the log. */
export class IncompleteViewFault extends Error {
  override readonly name = 'IncompleteViewFault';
}

/**
 * The log has the change, but the view may not. Whoever reads the log brings it in; until then processes go by the
 * view.
 */
export class ViewFault extends Error {
  override readonly name = 'ViewFault';
}

/** Another process has changed the same record meanwhile, and its change counts: this one was not made. */
export class Overtaken extends Error {
  override readonly name = 'Overtaken';
}

/** The log has fewer records than the view has read from it. Most likely the log was lost. */
export class LogLost extends Error {
  override readonly name = 'LogLost';
}
