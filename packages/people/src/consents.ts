/** The current consent of each identity, with catch-up from the log and rebuild from history. */
import { type ConsentRecord, consentCodec, createRecordReader, type SchemaSource } from '@playline/contracts';
import { inBatches } from '@playline/stores';
import type { PeopleRebuild } from './rebuild.ts';

/** A status that a player has chosen. Before the first choice, the status is `not_set` and nothing is stored. */
export type ChosenStatus = ConsentRecord['status'];

/** Position of a change in the log. One identity's changes are in several partitions only if partitions were added. */
export interface ConsentPosition {
  readonly partition: number;
  readonly offset: number;
  /** Log timestamp in epoch milliseconds. Compared only across partitions. */
  readonly loggedAtMs: number;
}

/** A consent change with its log position. */
export interface LoggedConsent {
  readonly environmentId: string;
  /** 16 bytes. */
  readonly identityKey: Buffer;
  readonly status: ChosenStatus;
  /** Gateway timestamp in epoch milliseconds. Compared with erasure cut-offs. */
  readonly receivedAt: number;
  readonly position: ConsentPosition;
}

export type ConsentRow = Pick<LoggedConsent, 'identityKey' | 'status' | 'receivedAt' | 'position'>;

export type StoredConsent = Omit<ConsentRow, 'identityKey'>;

/** `superseded`: the stored position is equal or later. `fenced`: the change is not later than an erasure's cut-off. */
export type ApplyOutcome = 'applied' | 'superseded' | 'fenced';

/** The current consents; the log is the source of truth. */
export interface ConsentStore {
  /**
   * Applies one change atomically. The latest position wins, regardless of arrival order.
   * @throws MissingEpochFault, or a connection fault, after which the change may be retried
   */
  apply(change: LoggedConsent): Promise<ApplyOutcome>;
  /**
   * Returns an identity's consent, or null if the player has not chosen.
   * @throws MissingEpochFault, LaggingStoreFault, MissingFencesFault, instead of an outdated or erased consent
   */
  read(environmentId: string, identityKey: Buffer): Promise<StoredConsent | null>;
  /** Returns the stored consents for an erasure, even when `read` would throw. */
  readStored(environmentId: string, identityKeys: readonly Buffer[]): Promise<ConsentRow[]>;
  /**
   * For an erasure, deletes the consents that have not changed since they were read. Fence the identities first;
   * otherwise an in-flight change may restore a consent.
   * @returns the number of deleted consents
   */
  forget(environmentId: string, consents: readonly ConsentRow[]): Promise<number>;
  syncState(): Promise<ConsentSyncState>;
  /**
   * Records that the store has applied the log up to `ends`, the end offset of each partition.
   * @returns false if `run` has ended, in which case applied changes may be lost and nothing is recorded
   */
  markCurrent(run: string, ends: ReadonlyMap<number, number>): Promise<boolean>;
  /**
   * Records that all changes before `ends` were applied, in cells that are current. Otherwise, a cell without changes
   * would read the whole log after a failover. Absent in a store that is not divided into cells.
   */
  noteApplied?(ends: ReadonlyMap<number, number>): Promise<void>;
}

/** The store's progress in applying the log. A run lasts from one start or promotion of Redis to the next. */
export interface ConsentSyncState {
  readonly run: string;
  /** False until the store has caught up with the log in this run. */
  readonly isCurrent: boolean;
  /** Whether the store may lack changes of the environment. */
  lags(environmentId: string): boolean;
  /** Highest applied offset per partition, written atomically with each consent. */
  readonly applied: ReadonlyMap<number, number>;
}

/** The store was restarted and may lack the latest changes. */
export class LaggingStoreFault extends Error {
  override readonly name = 'LaggingStoreFault';
  constructor() {
    super('Redis was restarted and may lack the latest consents, which are being reapplied from the log');
  }
}

/** Compares log positions by the rule of the view `consents_current`. */
export function isLater(position: ConsentPosition, stored: ConsentPosition): boolean {
  if (position.partition === stored.partition) return position.offset > stored.offset;
  if (position.loggedAtMs !== stored.loggedAtMs) return position.loggedAtMs > stored.loggedAtMs;
  return position.partition > stored.partition;
}

export interface ConsentBytes {
  readonly offset: number;
  /** Log timestamp in epoch milliseconds. */
  readonly timestampMs: number;
  readonly value: Buffer | null;
}

/** A reader of the consent log. */
export interface ConsentLog {
  /**
   * Start offset (inclusive) and end offset (exclusive) per partition. @throws if the topic is missing or Kafka is down
   */
  bounds(): Promise<readonly { partition: number; start: number; end: number }[]>;
  /** Reads records in order, from `start` (inclusive) to `end` (exclusive). @throws a log fault */
  read(range: { partition: number; start: number; end: number }): AsyncIterable<ConsentBytes>;
  readonly schemaOf: SchemaSource;
}

/**
 * Number of offsets reread before the highest applied offset. Gateways may apply changes out of order, but always
 * within the longest request deadline (20 s), so 10,000 offsets cover 500 changes per second per partition.
 */
const REREAD_OFFSETS = 10_000;
/** Large enough to amortize a round trip, small enough not to delay concurrent requests. */
const CHANGES_PER_CALL = 250;

/**
 * Reapplies the end of the log, which a restarted store may have lost. Safe to run alongside gateways and in several
 * processes: when one process finishes, the others stop.
 * @returns the number of changes read, or null if the store is already current
 * @throws MissingEpochFault if the store is empty and must be rebuilt; a log or store fault
 */
export async function catchUpConsents(
  store: Pick<ConsentStore, 'syncState' | 'markCurrent' | 'apply'>,
  log: ConsentLog,
): Promise<number | null> {
  const { run, isCurrent, lags, applied } = await store.syncState();
  if (isCurrent) return null;
  const decode = createRecordReader({ schemaOf: log.schemaOf, createReader: consentCodec.decoderOf });
  const bounds = await log.bounds();
  let count = 0;
  for (const { partition, start, end } of bounds) {
    const apply = async ({ offset, timestampMs, value }: ConsentBytes) => {
      const found = await decode(value);
      // The event writer turns unreadable records into dead letters.
      if (found.kind === 'unreadable') return;
      const { environmentId, identityKey, status, receivedAt } = found.record;
      if (!lags(environmentId)) return;
      const position = { partition, offset, loggedAtMs: timestampMs };
      await store.apply({ environmentId, identityKey, status, receivedAt, position });
    };
    const from = Math.max(start, Math.min(end, applied.get(partition) ?? start) - REREAD_OFFSETS);
    for await (const batch of inBatches(log.read({ partition, start: from, end }), CHANGES_PER_CALL)) {
      if ((await store.syncState()).isCurrent) return count;
      await Promise.all(batch.map(apply));
      count += batch.length;
    }
  }
  if (await store.markCurrent(run, new Map(bounds.map(({ partition, end }) => [partition, end])))) return count;
  throw new Error('Redis was restarted while consents were being reapplied from the log');
}

/** Longer than the longest request deadline, within which a gateway applies a change that it has logged. */
const SETTLED_MS = 60_000;

/** Creates a function that catches up, or notes the progress of a store that is current once a minute. */
export function createConsentSync(
  store: Pick<ConsentStore, 'syncState' | 'markCurrent' | 'apply' | 'noteApplied'>,
  log: ConsentLog,
): () => Promise<number | null> {
  let noted: { readonly atMs: number; readonly ends: ReadonlyMap<number, number> } | null = null;
  return async () => {
    const count = await catchUpConsents(store, log);
    const isDue = noted === null || performance.now() - noted.atMs > SETTLED_MS;
    if (count !== null || store.noteApplied === undefined || !isDue) return count;
    const ends = new Map((await log.bounds()).map(({ partition, end }) => [partition, end]));
    if (noted !== null) await store.noteApplied(noted.ends);
    noted = { atMs: performance.now(), ends };
    return null;
  };
}

export type RebuiltConsents = Record<ApplyOutcome, number>;

/** Larger batches are not faster. */
const ROWS_PER_CALL = 1_000;

/** Restores consents from history rows in any order. Gateways may write concurrently. Load the fences first. */
export async function rebuildConsents(
  rebuild: Pick<PeopleRebuild, 'loadConsents'>,
  rows: AsyncIterable<LoggedConsent> | Iterable<LoggedConsent>,
): Promise<RebuiltConsents> {
  const rebuilt: RebuiltConsents = { applied: 0, superseded: 0, fenced: 0 };
  for await (const changes of inBatches(toAsync(rows), ROWS_PER_CALL))
    for (const outcome of await rebuild.loadConsents(changes)) rebuilt[outcome]++;
  return rebuilt;
}

async function* toAsync<T>(rows: AsyncIterable<T> | Iterable<T>): AsyncGenerator<T> {
  yield* rows;
}
