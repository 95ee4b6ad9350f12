/**
 * Watermarks of the partitions of `chain.activities.v1`. All versions of a partition up to and including this time are
 * stored, and all later ones will have a greater time. A watermark is published after the insert.
 */
export interface Watermarks {
  /** Raises a partition's watermark. A value that is not greater changes nothing. @param us epoch microseconds */
  publish(partition: number, us: number): Promise<void>;
  /** Epoch microseconds; null when none was published or it was lost. It is then unknown until the next one. */
  read(partition: number): Promise<number | null>;
  /** True when the store answers. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/** The first time that must not be served yet. */
export function toHorizon(watermark: number): number {
  return watermark + 1;
}
