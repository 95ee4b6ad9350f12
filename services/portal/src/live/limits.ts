/** What Live may cost, for all subscribers together unless stated otherwise. */
export interface LiveLimits {
  /** A message must show within two seconds, reads of the brokers included. */
  readonly pollMs: number;
  /** Dead letters are rare, and late because of the writer's retries. */
  readonly deadLettersPollMs: number;
  /** 500 a second, more than anyone reads. Beyond it records are sampled. */
  readonly recordsPerPollMax: number;
  /** 8 MiB a second. Counted as records arrive, so one more response is possible. */
  readonly bytesPerPollMax: number;
  /** Some seconds at the highest rate, as long as a message takes to be stored. */
  readonly bufferEntriesMax: number;
  readonly bufferBytesMax: number;
  /** Characters of properties and of traits of one message. */
  readonly textCharactersMax: number;
  /** Of one subscriber; one that does not read loses the oldest. */
  readonly queueEventsMax: number;
  readonly subscribersMax: number;
  /** Interval and timeout of the permission check: a stream ends within two of these. */
  readonly permissionMs: number;
  /** Fenced people disappear within a second: the fences are refreshed every second, the buffer at this interval. */
  readonly sweepMs: number;
  readonly statusMs: number;
}

export const LIVE_LIMITS: LiveLimits = {
  pollMs: 500,
  deadLettersPollMs: 1_000,
  recordsPerPollMax: 250,
  bytesPerPollMax: 4 * 1024 * 1024,
  bufferEntriesMax: 2_000,
  bufferBytesMax: 8 * 1024 * 1024,
  textCharactersMax: 2_048,
  queueEventsMax: 500,
  subscribersMax: 64,
  permissionMs: 500,
  sweepMs: 250,
  statusMs: 1_000,
};
