/** Resource limits for Live across all subscribers, unless stated otherwise. */
export const LIVE_LIMITS = {
  /** Messages must appear within two seconds, including the time to read them from Kafka. */
  pollMs: 500,
  /** Dead letters are rare and delayed by retries. */
  deadLettersPollMs: 1_000,
  /** 500 records per second, more than a viewer can follow. Above this rate, records are sampled. */
  recordsPerPollMax: 250,
  /** 8 MiB per second. May be exceeded by one fetch response, because bytes are counted on arrival. */
  bytesPerPollMax: 4 * 1024 * 1024,
  /** A few seconds at the maximum rate, which is the time until a message is stored. */
  bufferEntriesMax: 2_000,
  bufferBytesMax: 8 * 1024 * 1024,
  textCharactersMax: 2_048,
  /** Per subscriber. A slow subscriber loses its oldest events. */
  queueEventsMax: 500,
  subscribersMax: 64,
  /** Interval and timeout of the permission check. A stream ends within two intervals. */
  permissionMs: 500,
  /** Interval at which fences are applied to buffered messages. Fences are refreshed every second. */
  sweepMs: 250,
  statusMs: 1_000,
};

export type LiveLimits = Readonly<typeof LIVE_LIMITS>;
