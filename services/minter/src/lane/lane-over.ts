import { isTakenOver } from '@playline/stream';

/** The writer of a lane cannot be used any more: it was fenced, or does not know what was written. Open a new one. */
export class LaneOver extends Error {
  override readonly name = 'LaneOver';

  /** Whether another writer of the signer is at work: a minter, or an operator's command. */
  get isTakenOver(): boolean {
    return this.cause === undefined || isTakenOver(this.cause);
  }
}
