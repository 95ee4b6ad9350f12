/** The writer of a lane cannot be used any more: it was fenced, or does not know what was written. Open a new one. */
export class LaneOver extends Error {
  override readonly name = 'LaneOver';
}
