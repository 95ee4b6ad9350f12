/** One watermark per partition. All versions up to this time are stored; later versions have a greater time. */
export interface Watermarks {
  /** Raises the watermark; never lowers it. @param us in epoch microseconds */
  publish(partition: number, us: number): Promise<void>;
  /** Returns null if no watermark is stored. */
  read(partition: number): Promise<number | null>;
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/** Returns the earliest time that pages do not contain yet. */
export function toHorizon(watermark: number): number {
  return watermark + 1;
}
