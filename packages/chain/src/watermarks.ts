/**
 * How far each partition of `chain.activities.v1` is known. A watermark says that every version of its partition up to
 * and including this time stands, and that every later one will have a greater time. It is published behind the insert.
 */
export interface Watermarks {
  /** Raises a partition's watermark; one that is not greater changes nothing. @param us epoch microseconds */
  publish(partition: number, us: number): Promise<void>;
  /** Epoch microseconds; null when none was published, or it was lost: then nobody knows until the next is. */
  read(partition: number): Promise<number | null>;
  /** True when the store answers. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/** The first time that must not be served yet. */
export function toHorizon(watermark: number): number {
  return watermark + 1;
}
