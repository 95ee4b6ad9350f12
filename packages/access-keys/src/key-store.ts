import type { KeyEnvironment, KeyKind } from './key-text.ts';
import type { ViewStanding } from './records/view-faults.ts';

/** What is kept of a key. The text of a secret key is nowhere: it is shown once and hashed. */
export interface KeyRecord {
  readonly keyId: string;
  readonly projectId: string;
  readonly environmentId: string;
  readonly environment: KeyEnvironment;
  readonly kind: KeyKind;
  /** SHA-256 of the key's text, hexadecimal. */
  readonly hash: string;
  /** First and last four characters of the random part, so that a person can tell keys apart. */
  readonly first4: string;
  readonly last4: string;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** Epoch milliseconds; null while the key lives. */
  readonly revokedAt: number | null;
  /** Name for people; '' without one. */
  readonly name: string;
  /** Text of a publishable key, which is no secret; null for secret keys and for keys of earlier releases. */
  readonly text: string | null;
  /** Who made or ended it, and with which request; '' when unknown. */
  readonly changedBy: string;
  readonly requestId: string;
  /** For a publishable key: origins whose pages may use it (`parseOrigins`). Empty means any. */
  readonly origins: readonly string[];
  /** Epoch milliseconds; 0 when it was never changed. */
  readonly changedAt: number;
}

/** Keeps key records. Each environment has at most one live key of a kind. */
export interface KeyStore {
  /** The record with this hash, ended or not; null when there is none. @throws when the store cannot answer */
  find(hash: string): Promise<KeyRecord | null>;
  /** The live key of an environment. */
  findLive(environmentId: string, kind: KeyKind): Promise<KeyRecord | null>;
  /**
   * In one step: ends `ended` (a record with `revokedAt` set) if given, and adds `added` if given.
   * @returns false, and changes nothing, unless `ended` is the environment's live key of that kind, or there is none
   * and `ended` is null
   */
  replace(ended: KeyRecord | null, added: KeyRecord | null): Promise<boolean>;
  /**
   * Replaces the record with the same hash.
   * @returns false, and changes nothing, unless that is the environment's live key of its kind
   */
  amend(changed: KeyRecord): Promise<boolean>;
  /** Every key of a project, ended ones too, oldest first. */
  list(projectId: string): Promise<KeyRecord[]>;
}

/**
 * A place in the sequence of changes to the list of live keys. Each list has places of its own, also one that was
 * rebuilt.
 */
export interface KeyListPlace {
  readonly list: string;
  readonly version: number;
}

/** Changes of live keys up to a place. */
export interface KeyChanges {
  readonly place: KeyListPlace;
  /** In order. Null when the whole list must be read: it is another list, or too many changes were missed. */
  readonly changes: readonly { readonly hash: string; readonly isLive: boolean }[] | null;
}

/** A key store that is a view of the log, and can be rebuilt from it. */
export interface KeyView extends KeyStore {
  /**
   * False when the view never had the keys, has lost them, or was restarted since it last had all of them, which may
   * have cost it the last changes. Until it is complete again, `find` throws `IncompleteViewFault`. It must not call a
   * key unknown, because clients throw away messages that are refused with a 401. It must not call a key live either,
   * because that key may have ended. It does report keys that have ended, since those never become live again.
   */
  isComplete(): Promise<boolean>;
  standing(): Promise<ViewStanding>;
  /** Hashes of all records. */
  hashes(): Promise<string[]>;
  /**
   * Changes of live keys since a place; null when the caller has none.
   * @throws IncompleteViewFault as `find`
   */
  changesSince(place: KeyListPlace | null): Promise<KeyChanges>;
  /** A page of the hashes of live keys. What changes meanwhile may be missing. @param cursor null begins @returns null at the end */
  scanLive(cursor: string | null): Promise<{ readonly cursor: string | null; readonly hashes: readonly string[] }>;
  /**
   * Applies the records of the log, removes unknown ones (`strangers`), and marks the view as complete. A key that has
   * ended in the view stays ended: that change may be younger than what was read of the log.
   * @param run the run of the store before the log was read
   * @throws Error when that run is over: what was applied may be lost again
   */
  restore(records: readonly KeyRecord[], strangers: readonly string[], run: string): Promise<void>;
  /**
   * Runs `work` while no other process runs its own; waits for its turn.
   * @throws when the view cannot tell whose turn it is
   */
  exclusive<T>(work: () => Promise<T>): Promise<T>;
}
