/** What Live may cost, for all subscribers together unless stated otherwise. */
export const LIVE_LIMITS = {
  /** A message must show within two seconds, reads of the brokers included. */
  pollMs: 500,
  /** Dead letters are rare, and late because of the writer's retries. */
  deadLettersPollMs: 1_000,
  /** 500 a second, more than anyone reads. Beyond it records are sampled. */
  recordsPerPollMax: 250,
  /** 8 MiB a second. Counted as records arrive, so one more response is possible. */
  bytesPerPollMax: 4 * 1024 * 1024,
  /** Some seconds at the highest rate, as long as a message takes to be stored. */
  bufferEntriesMax: 2_000,
  bufferBytesMax: 8 * 1024 * 1024,
  textCharactersMax: 2_048,
  /** Of one subscriber; one that does not read loses the oldest. */
  queueEventsMax: 500,
  subscribersMax: 64,
  /** Interval and timeout of the permission check: a stream ends within two of these. */
  permissionMs: 500,
  /** Fenced people disappear within a second: the fences are refreshed every second, the buffer at this interval. */
  sweepMs: 250,
  statusMs: 1_000,
};

export type LiveLimits = Readonly<typeof LIVE_LIMITS>;
