/** The writer of a lane is over: fenced, or it does not know what it has written. Whoever goes on takes over. */
export class LaneOver extends Error {
  override readonly name = 'LaneOver';
}
