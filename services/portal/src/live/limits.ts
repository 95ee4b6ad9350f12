/** What the live view may cost; all of it together, unless it says otherwise. */
export interface LiveLimits {
  /** A message has to be seen within two seconds: this wait, the questions to the brokers and the reading stay well below. */
  readonly pollMs: number;
  /** Of dead letters, of which a healthy pipeline has none: a message becomes one after the writer's tries, not at once. */
  readonly deadLettersPollMs: number;
  /** Five hundred a second: more than anybody reads. What comes beyond it is sampled. */
  readonly recordsPerPollMax: number;
  /** Eight mebibytes a second from brokers that move hundreds. Counted as records come, so one answer more is possible. */
  readonly bytesPerPollMax: number;
  /** Some seconds of the fastest reading: as long as a message takes to be stored. */
  readonly bufferEntriesMax: number;
  readonly bufferBytesMax: number;
  /** Properties and traits of one message, in characters; what is longer is cut and says so. */
  readonly textCharactersMax: number;
  /** More than a page shows; a looker that does not read loses the oldest. */
  readonly queueEventsMax: number;
  /** Each costs a timer and a queue of references; all read the same copy. */
  readonly subscribersMax: number;
  /** Asked twice a second, and given up when it is not answered by the next time: an end shows within a second. */
  readonly permissionMs: number;
  /** Fenced identities leave within a second of being known; the set of fences itself is asked for each second. */
  readonly sweepMs: number;
  /** Numbers that change all the time need not be told more often. */
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
