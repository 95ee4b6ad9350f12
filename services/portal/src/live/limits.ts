/** Resource limits for Live. Unless noted otherwise, they apply to all subscribers together. */
export const LIVE_LIMITS = {
  /** Allows messages to appear within two seconds, including the time to read them from Kafka. */
  pollMs: 500,
  /** Longer than `pollMs`, because dead letters are rare and are already delayed by retries. */
  deadLettersPollMs: 1_000,
  /** Equals 500 records per second, more than a viewer can follow. Above this rate, records are sampled. */
  recordsPerPollMax: 250,
  /** Equals 8 MiB per second. One fetch response can exceed the limit, because bytes are counted on arrival. */
  bytesPerPollMax: 4 * 1024 * 1024,
  /** Holds a few seconds of records at the maximum rate, about as long as storing a message takes. */
  bufferEntriesMax: 2_000,
  bufferBytesMax: 8 * 1024 * 1024,
  textCharactersMax: 2_048,
  /** Per subscriber. A slow subscriber loses its oldest events. */
  queueEventsMax: 500,
  subscribersMax: 64,
  /** Interval and timeout of the permission check. After a permission is lost, the stream ends within two intervals. */
  permissionMs: 500,
  /** Interval at which fences are applied to buffered messages. The fences are refreshed once a second. */
  fenceCheckMs: 250,
  statusMs: 1_000,
};

export type LiveLimits = Readonly<typeof LIVE_LIMITS>;
