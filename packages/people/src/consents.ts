/** Current consents of all identities, and their catch-up and rebuild from the log. */
import { type ConsentRecord, consentCodec, createRecordReader, type SchemaSource } from '@playline/contracts';
import { inBatches } from '@playline/stores';
import type { PeopleRebuild } from './rebuild.ts';

/** A stored choice; without a choice the status is `not_set`. */
export type ChosenStatus = ConsentRecord['status'];

/** Position of a change in the log. An identity has changes in two partitions only if partitions were added. */
export interface ConsentPosition {
  readonly partition: number;
  readonly offset: number;
  /** Epoch milliseconds by the log's clock. Compared only across partitions. */
  readonly loggedAtMs: number;
}

/** A consent change with its log position. */
export interface LoggedConsent {
  readonly environmentId: string;
  /** 16 bytes. */
  readonly identityKey: Buffer;
  readonly status: ChosenStatus;
  /** Epoch milliseconds by the gateway's clock. Compared with an erasure's cut-off. */
  readonly receivedAt: number;
  readonly position: ConsentPosition;
}

export type HeldConsent = Pick<LoggedConsent, 'identityKey' | 'status' | 'receivedAt' | 'position'>;

export type StoredConsent = Omit<HeldConsent, 'identityKey'>;

/**
 * `superseded`: the same or a later position is stored. `fenced`: the change is not later than an erasure's cut-off.
 */
export type ApplyOutcome = 'applied' | 'superseded' | 'fenced';

/** The current consents; the log is the source of truth. */
export interface ConsentStore {
  /**
   * Applies one change atomically; the latest position wins, in any order of arrival.
   * @throws MissingEpochFault, or a connection fault, after which the change may be applied again
   */
  apply(change: LoggedConsent): Promise<ApplyOutcome>;
  /**
   * An identity's consent; null when none was chosen.
   * @throws MissingEpochFault, LaggingStoreFault, MissingFencesFault, instead of an outdated or erased consent
   */
  read(environmentId: string, identityKey: Buffer): Promise<StoredConsent | null>;
  /** For erasures: the stored consents of the given identities, even when `read` would throw. */
  readStored(environmentId: string, identityKeys: readonly Buffer[]): Promise<HeldConsent[]>;
  /**
   * For erasures: forgets these consents unless they have changed. Fence the identities first, or an in-flight
   * change restores them.
   * @returns the number of forgotten consents
   */
  forget(environmentId: string, consents: readonly HeldConsent[]): Promise<number>;
  syncState(): Promise<ConsentSyncState>;
  /**
   * Records that the store contains the log up to `ends`: per partition, the offset after the last record.
   * @returns false, without a change, when `run` has ended and applied changes may be lost
   */
  markCurrent(run: string, ends: ReadonlyMap<number, number>): Promise<boolean>;
}

/** Sync state of the store with its log. A run lasts from one start or promotion of Redis to the next. */
export interface ConsentSyncState {
  readonly run: string;
  /** False until the store has caught up with the log in this run. */
  readonly isCurrent: boolean;
  /** Greatest applied offset per partition, written together with the consent. */
  readonly applied: ReadonlyMap<number, number>;
}

/** The store was restarted and may lack the latest changes. */
export class LaggingStoreFault extends Error {
  override readonly name = 'LaggingStoreFault';
  constructor() {
    super('Redis was restarted and may lack the latest consents. They are being reapplied from the log');
  }
}

/** Whether `position` is later than the stored position, by the same rule as the view `consents_current`. */
export function isLater(position: ConsentPosition, stored: ConsentPosition): boolean {
  if (position.partition === stored.partition) return position.offset > stored.offset;
  if (position.loggedAtMs !== stored.loggedAtMs) return position.loggedAtMs > stored.loggedAtMs;
  return position.partition > stored.partition;
}

export interface ConsentBytes {
  readonly offset: number;
  /** Epoch milliseconds by the log's clock. */
  readonly timestampMs: number;
  readonly value: Buffer | null;
}

/** A reader of the consent log. */
export interface ConsentLog {
  /** Offsets from `start` to before `end`. @throws Error when the topic is missing or Kafka does not respond */
  bounds(): Promise<readonly { partition: number; start: number; end: number }[]>;
  /** Records from `start` up to but excluding `end`, in order. @throws a log fault */
  read(range: { partition: number; start: number; end: number }): AsyncIterable<ConsentBytes>;
  readonly schemaOf: SchemaSource;
}

/**
 * How many offsets before the greatest applied offset are reread: gateways apply changes out of order, but within the
 * longest request deadline (20 s). A partition would need more than 500 changes a second to exceed this.
 */
const REREAD_OFFSETS = 10_000;
/** Enough to be worth a round trip, and few enough that requests are served in between. */
const CHANGES_PER_CALL = 250;

/**
 * Reapplies the end of the log, which a restarted store may have lost, starting from the stored offsets. May run
 * alongside gateways and in several processes: when one process finishes, the others stop.
 * @returns the number of changes read; null when the store is current
 * @throws MissingEpochFault when the store is empty and must be rebuilt; a fault of the log or the store
 */
export async function catchUpConsents(
  store: Pick<ConsentStore, 'syncState' | 'markCurrent' | 'apply'>,
  log: ConsentLog,
): Promise<number | null> {
  const { run, isCurrent, applied } = await store.syncState();
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
  throw new Error('Redis was restarted while consents were applied from the log');
}

export type RebuiltConsents = Record<ApplyOutcome, number>;

/** Larger batches are not faster. */
const ROWS_PER_CALL = 1_000;

/** Restores consents from their history, in any order, while gateways may write. Load the fences first. */
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
