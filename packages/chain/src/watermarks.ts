/** Watermarks per partition: all versions up to this time are stored, and later versions have a greater time. */
export interface Watermarks {
  /** Only raises the watermark. @param us epoch microseconds */
  publish(partition: number, us: number): Promise<void>;
  /** null when no watermark is stored. */
  read(partition: number): Promise<number | null>;
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/** The first time that is not served yet. */
export function toHorizon(watermark: number): number {
  return watermark + 1;
}
