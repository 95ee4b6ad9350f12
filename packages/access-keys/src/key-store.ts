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
  /** What people call it; '' when nobody named it. */
  readonly name: string;
  /** Of a publishable key, which is no secret; null for secret keys, and for those of releases that did not keep it. */
  readonly text: string | null;
  /** Who made or ended it, and with what request; '' when it was not said. */
  readonly changedBy: string;
  readonly requestId: string;
  /** Of a publishable key: origins whose pages may use it (`parseOrigins`); none: any. */
  readonly origins: readonly string[];
  /** Epoch milliseconds; 0 while it is as it was made. */
  readonly changedAt: number;
}

/** Keeps key records. Each environment has at most one live key of a kind. */
export interface KeyStore {
  /** The record with this hash, ended or not; null when there is none. @throws when the store cannot answer */
  find(hash: string): Promise<KeyRecord | null>;
  /** The live key of an environment. */
  findLive(environmentId: string, kind: KeyKind): Promise<KeyRecord | null>;
  /**
   * In one step: ends `ended` (a record with `revokedAt` set), when given, and adds `added`, when given.
   * @returns false, and changes nothing, unless the environment's live key of that kind was the one given as `ended`
   *   (none, when `ended` is null)
   */
  replace(ended: KeyRecord | null, added: KeyRecord | null): Promise<boolean>;
  /**
   * Puts a changed record in the place of the one with its hash.
   * @returns false, and changes nothing, unless that is the environment's live key of its kind
   */
  amend(changed: KeyRecord): Promise<boolean>;
  /** Every key of a project, ended ones too, oldest first. */
  list(projectId: string): Promise<KeyRecord[]>;
}

/** A moment of the list of live keys. Another list, or one that was made anew, has places of its own. */
export interface KeyListPlace {
  readonly list: string;
  readonly version: number;
}

/** What became of live keys up to a place. */
export interface KeyChanges {
  readonly place: KeyListPlace;
  /** In order; null when the list has to be read whole: it is another, or too much has happened. */
  readonly changes: readonly { readonly hash: string; readonly isLive: boolean }[] | null;
}

/** A key store that is only a view of the log: it can be made anew from it. */
export interface KeyView extends KeyStore {
  /**
   * False when the view never had the keys, has lost them, or was started since it last had them all, which may have
   * cost it the last changes. Until it is complete again `find` throws `IncompleteViewFault`: instead of calling a key
   * unknown, because clients throw away what they are refused with a 401, and instead of calling one live, because it
   * may have been ended. A key that has ended is told: it never lives again.
   */
  isComplete(): Promise<boolean>;
  standing(): Promise<ViewStanding>;
  /** Hashes of all records. */
  hashes(): Promise<string[]>;
  /**
   * What became of live keys since a place; null asks from nowhere on.
   * @throws IncompleteViewFault as `find`
   */
  changesSince(place: KeyListPlace | null): Promise<KeyChanges>;
  /** A page of the hashes of live keys. What changes meanwhile may be missing. @param cursor null begins @returns null at the end */
  scanLive(cursor: string | null): Promise<{ readonly cursor: string | null; readonly hashes: readonly string[] }>;
  /**
   * Brings in the records of the log, takes the strangers out, and is complete from then on. An ended record stays
   * ended: the change may be younger than the reading of the log.
   * @param run the run before the log was read
   * @throws Error when that run is over: what was brought in may be lost again
   */
  restore(records: readonly KeyRecord[], strangers: readonly string[], run: string): Promise<void>;
  /** Runs `work` while nobody else runs theirs, in any process; waits for its turn. @throws when the view cannot say */
  exclusive<T>(work: () => Promise<T>): Promise<T>;
}
