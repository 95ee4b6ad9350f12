/** The current consent of every identity, and how it is caught up and rebuilt from its log. */
import { type ConsentRecord, consentCodec, createRecordReader, type SchemaSource } from '@playline/contracts';
import { inBatches } from '@playline/stores';
import type { PeopleRebuild } from './rebuild.ts';

/** A stored choice; `not_set` is the absence of one. */
export type ChosenStatus = ConsentRecord['status'];

/** Position of a change in the log. An identity has changes in two partitions only if partitions were added. */
export interface ConsentPosition {
  readonly partition: number;
  readonly offset: number;
  /** Epoch milliseconds by the clock of the log. Compared only across partitions. */
  readonly loggedAtMs: number;
}

/** A change of consent with its position in the log. */
export interface LoggedConsent {
  readonly environmentId: string;
  /** 16 bytes. */
  readonly identityKey: Buffer;
  readonly status: ChosenStatus;
  /** Epoch milliseconds by the clock of the gateway. Compared with an erasure's cut-off. */
  readonly receivedAt: number;
  readonly position: ConsentPosition;
}

export type HeldConsent = Pick<LoggedConsent, 'identityKey' | 'status' | 'receivedAt' | 'position'>;

export type StoredConsent = Omit<HeldConsent, 'identityKey'>;

/** `superseded`: the same or a later position is stored. `fenced`: the change is not later than an erasure's cut-off. */
export type ApplyOutcome = 'applied' | 'superseded' | 'fenced';

/** The current consents; the log is the source of truth. */
export interface ConsentStore {
  /**
   * Applies one change atomically; the latest position applies, in any order of arrival.
   * @throws MissingEpochFault, or a fault of the connection: then the same change may be applied again
   */
  apply(change: LoggedConsent): Promise<ApplyOutcome>;
  /**
   * The consent of an identity; null when it has chosen nothing.
   * @throws MissingEpochFault, LaggingStoreFault, MissingFencesFault, instead of an outdated or erased consent
   */
  read(environmentId: string, identityKey: Buffer): Promise<StoredConsent | null>;
  /** For erasures: the stored consents of these identities, even when `read` would throw. */
  readStored(environmentId: string, identityKeys: readonly Buffer[]): Promise<HeldConsent[]>;
  /**
   * For erasures: forgets these consents unless they have changed. Fence the identities first, or a change in flight
   * brings them back.
   * @returns the number of forgotten consents
   */
  forget(environmentId: string, consents: readonly HeldConsent[]): Promise<number>;
  syncState(): Promise<ConsentSyncState>;
  /**
   * Records that the store has the log up to `ends`, for each partition the offset after its last record.
   * @returns false without a change when `run` has ended, so that applied changes may be lost
   */
  markCurrent(run: string, ends: ReadonlyMap<number, number>): Promise<boolean>;
}

/** Sync of the store with its log. A run lasts from a start or promotion of Redis to the next one. */
export interface ConsentSyncState {
  readonly run: string;
  /** False until the log of the last run was caught up with. */
  readonly isCurrent: boolean;
  /** Greatest applied offset by partition, written together with the consent. */
  readonly applied: ReadonlyMap<number, number>;
}

/** The store was restarted and may lack the last changes. */
export class LaggingStoreFault extends Error {
  override readonly name = 'LaggingStoreFault';
  constructor() {
    super('Redis was restarted and may lack the last consents. They are being applied again from the log');
  }
}

/** Whether `position` is later than the stored one, by the rule of the view `consents_current`. */
export function isLater(position: ConsentPosition, stored: ConsentPosition): boolean {
  if (position.partition === stored.partition) return position.offset > stored.offset;
  if (position.loggedAtMs !== stored.loggedAtMs) return position.loggedAtMs > stored.loggedAtMs;
  return position.partition > stored.partition;
}

export interface ConsentBytes {
  readonly offset: number;
  /** Epoch milliseconds by the clock of the log. */
  readonly timestampMs: number;
  readonly value: Buffer | null;
}

/** A reader of the log of consents. */
export interface ConsentLog {
  /** Offsets from `start` to before `end`. @throws Error when the topic does not exist or Kafka does not answer */
  bounds(): Promise<readonly { partition: number; start: number; end: number }[]>;
  /** Records from `start` to before `end`, in order. @throws Error of the log */
  read(range: { partition: number; start: number; end: number }): AsyncIterable<ConsentBytes>;
  readonly schemaOf: SchemaSource;
}

/**
 * Offsets before the greatest applied one that are read again: gateways apply changes out of order, within the longest
 * deadline of a request, 20 s. So one partition would need more than 500 changes a second to exceed this.
 */
const READ_AGAIN_OFFSETS = 10_000;
/** Worth a round trip, and few enough that requests are served in between. */
const CHANGES_A_CALL = 250;

/**
 * Applies the end of the log, which a restarted store may have lost, from the stored offsets on. May run beside gateways
 * and in several processes: the first to finish ends the work of the others.
 * @returns changes read; null when the store lacks nothing
 * @throws MissingEpochFault of an emptied store, which must be rebuilt; Error of the log or the store
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
      // The event writer sends unreadable records to the dead letters.
      if (found.kind === 'unreadable') return;
      const { environmentId, identityKey, status, receivedAt } = found.record;
      const position = { partition, offset, loggedAtMs: timestampMs };
      await store.apply({ environmentId, identityKey, status, receivedAt, position });
    };
    const from = Math.max(start, Math.min(end, applied.get(partition) ?? start) - READ_AGAIN_OFFSETS);
    for await (const batch of inBatches(log.read({ partition, start: from, end }), CHANGES_A_CALL)) {
      if ((await store.syncState()).isCurrent) return count;
      await Promise.all(batch.map(apply));
      count += batch.length;
    }
  }
  if (await store.markCurrent(run, new Map(bounds.map(({ partition, end }) => [partition, end])))) return count;
  throw new Error('Redis was restarted while consents were applied from the log');
}

export type RebuiltConsents = Record<ApplyOutcome, number>;

/** More would not make it faster. */
const ROWS_A_CALL = 1_000;

/** Restores consents from their history, in any order, while gateways may write. Load the fences first. */
export async function rebuildConsents(
  rebuild: Pick<PeopleRebuild, 'loadConsents'>,
  rows: AsyncIterable<LoggedConsent> | Iterable<LoggedConsent>,
): Promise<RebuiltConsents> {
  const rebuilt: RebuiltConsents = { applied: 0, superseded: 0, fenced: 0 };
  for await (const changes of inBatches(toAsync(rows), ROWS_A_CALL))
    for (const outcome of await rebuild.loadConsents(changes)) rebuilt[outcome]++;
  return rebuilt;
}

async function* toAsync<T>(rows: AsyncIterable<T> | Iterable<T>): AsyncGenerator<T> {
  yield* rows;
}
