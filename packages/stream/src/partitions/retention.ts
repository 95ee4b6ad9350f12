const HOUR_MS = 3_600_000;
/** With less than a day left somebody has to be woken: mending a store may take a night and a morning. */
export const ALARM_HOURS = 24;

/**
 * Hours until retention may take a record; negative when it may have gone already. To the tenth: Kafka deletes whole
 * segments, so a record goes some hours later than that, never before. By the clock of the day, as retention is.
 */
export function hoursLeft(timestampMs: number, retentionMs: number): number {
  const goneAtMs = timestampMs + retentionMs;
  const readAtMs = Date.now();
  return Math.round(((goneAtMs - readAtMs) / HOUR_MS) * 10) / 10;
}
