const HOUR_MS = 3_600_000;
/** With less than a day left somebody must be alerted: repairing a store may take a night and a morning. */
export const ALARM_HOURS = 24;

/**
 * Hours until retention may take a record; negative when that time has passed. To one decimal: Kafka deletes whole
 * segments, so a record disappears some hours later than that, never earlier. By the wall clock, as retention is.
 */
export function hoursLeft(timestampMs: number, retentionMs: number): number {
  const goneAtMs = timestampMs + retentionMs;
  const readAtMs = Date.now();
  return Math.round(((goneAtMs - readAtMs) / HOUR_MS) * 10) / 10;
}
