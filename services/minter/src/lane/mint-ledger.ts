import type { MintRequestRecord, MintStateRecord, MintTransactionRecord } from '@playline/contracts';
import type { LaneChange } from '../ports.ts';
import { DigestTable } from './digest-table.ts';
import { FailedAttempts, toAttemptKey } from './failed-attempts.ts';

/** The members that name a reference id: it belongs to a project and a collection. */
export type ReferenceName = Pick<MintRequestRecord, 'contractAddress' | 'projectId' | 'referenceId'>;

/** Key of a reference id within its chain. */
export const toReferenceKey = ({ contractAddress, projectId, referenceId }: ReferenceName): string =>
  `${contractAddress.toString('hex')}:${projectId}:${referenceId}`;

/** Tells attempts of one reference id apart; never 0. */
const toMark = ({ attemptId }: Pick<MintRequestRecord, 'attemptId'>): number => attemptId.readUInt32LE(0) || 1;

const compareOffsets = (one: MintStateRecord, other: MintStateRecord) =>
  one.requestPartition - other.requestPartition || one.requestOffset - other.requestOffset;

/** Whether a transaction of its nonce was in a block when that was last checked. */
export const isInBlock = ({ stage }: Pick<MintStateRecord, 'stage'>): boolean =>
  stage === 'mined' || stage === 'reverted';

/**
 * What the log says of one signer, in memory. It depends on the records alone, so two processes that have read the same
 * log decide the same. Has all of pending assets, a digest of the reference id of each minted one, and the latest failed
 * attempts.
 */
export class MintLedger {
  readonly #pending = new Map<string, MintStateRecord>();
  /** Cache of the pending assets in order; null after a change. */
  #ordered: readonly MintStateRecord[] | null = null;
  /** True while the keys of pending assets are in the order of their requests. */
  #isOrdered = true;
  #last: MintStateRecord | null = null;
  /** Pending assets that have a nonce, by nonce and attempt. */
  readonly #carried = new Map<number, Map<string, MintStateRecord>>();
  /** The pending attempt of a reference id. */
  readonly #holders = new Map<string, string>();
  /** By the reference id of a minted asset: the beginning of its attempt. */
  readonly #minted = new DigestTable();
  readonly #transactions = new Map<number, MintTransactionRecord[]>();
  /** All nonces that an attempt ever had. */
  readonly #carriers = new Map<string, Set<number>>();
  readonly failed = new FailedAttempts();
  #highWater: number | null = null;
  #genesisHash: Buffer | null = null;

  /** Applies a change that is in the log. */
  apply({ states, transactions, forgotten }: LaneChange): void {
    for (const state of states) this.#applyState(state);
    for (const transaction of transactions) this.#applyTransaction(transaction);
    for (const { nonce } of forgotten) this.#forget(nonce);
  }

  #applyState(state: MintStateRecord): void {
    const [attempt, reference] = [toAttemptKey(state), toReferenceKey(state)];
    this.#follow(attempt, state);
    if (state.status === 'pending') this.#holders.set(reference, attempt);
    else if (this.#holders.get(reference) === attempt) this.#holders.delete(reference);
    if (state.status === 'failed') this.failed.add(state);
    if (state.status === 'succeeded') this.#minted.set(reference, toMark(state));
  }

  #follow(attempt: string, state: MintStateRecord): void {
    const before = this.#pending.get(attempt);
    if (before !== undefined && before.nonce !== null) this.#leave(before.nonce, attempt);
    this.#ordered = null;
    if (state.status !== 'pending') {
      this.#pending.delete(attempt);
      return;
    }
    if (before === undefined) {
      if (this.#last !== null && compareOffsets(this.#last, state) > 0) this.#isOrdered = false;
      else this.#last = state;
    }
    this.#pending.set(attempt, state);
    if (state.nonce === null) return;
    const carried = this.#carried.get(state.nonce) ?? new Map<string, MintStateRecord>();
    this.#carried.set(state.nonce, carried.set(attempt, state));
  }

  #leave(nonce: number, attempt: string): void {
    const carried = this.#carried.get(nonce);
    carried?.delete(attempt);
    if (carried?.size === 0) this.#carried.delete(nonce);
  }

  #applyTransaction(transaction: MintTransactionRecord): void {
    const { nonce, variant, kind, genesisHash } = transaction;
    this.#genesisHash = genesisHash;
    this.#highWater = Math.max(this.#highWater ?? -1, nonce);
    if (kind === 'high_water') return;
    for (const asset of transaction.assets) {
      const attempt = toAttemptKey(asset);
      this.#carriers.set(attempt, (this.#carriers.get(attempt) ?? new Set()).add(nonce));
    }
    const others = (this.#transactions.get(nonce) ?? []).filter((other) => other.variant !== variant);
    this.#transactions.set(
      nonce,
      [...others, transaction].sort((one, other) => one.variant - other.variant),
    );
  }

  #forget(nonce: number): void {
    for (const { assets } of this.#transactions.get(nonce) ?? [])
      for (const asset of assets) this.#carriers.delete(toAttemptKey(asset));
    this.#transactions.delete(nonce);
  }

  /** Pending assets in the order of their requests. */
  get pending(): readonly MintStateRecord[] {
    if (!this.#isOrdered) this.#order();
    this.#ordered ??= [...this.#pending.values()];
    return this.#ordered;
  }

  /** Requests from several partitions need sorting; those from one partition come in order. */
  #order(): void {
    const sorted = [...this.#pending].sort(([, one], [, other]) => compareOffsets(one, other));
    this.#pending.clear();
    for (const [attempt, state] of sorted) this.#pending.set(attempt, state);
    this.#last = sorted.at(-1)?.[1] ?? null;
    this.#isOrdered = true;
  }

  /** The largest nonce ever logged; null: none was. */
  get highWater(): number | null {
    return this.#highWater;
  }

  /** Genesis hash of the chain that all transactions were signed for; null: none was. */
  get genesisHash(): Buffer | null {
    return this.#genesisHash;
  }

  /** Whether an attempt of the reference id is pending or has succeeded. */
  isHeld(request: ReferenceName): boolean {
    const reference = toReferenceKey(request);
    return this.#holders.has(reference) || this.#minted.get(reference) !== 0;
  }

  /** Whether this very request was decided before. Of failed ones only the latest are known. */
  isKnown(request: ReferenceName & Pick<MintRequestRecord, 'attemptId'>): boolean {
    if (this.failed.has(request)) return true;
    const reference = toReferenceKey(request);
    const holder = this.#holders.get(reference);
    return holder === undefined ? this.#minted.get(reference) === toMark(request) : holder === toAttemptKey(request);
  }

  /** Nonces with pending assets, in order. Its assets are free only once a final transaction has spent the nonce. */
  get openNonces(): readonly number[] {
    return [...this.#carried.keys()].sort((one, other) => one - other);
  }

  /** Open nonces whose transactions were in no block when that was last checked. */
  get absentNonces(): readonly number[] {
    return this.openNonces.filter((nonce) => !this.assetsOf(nonce).some(isInBlock));
  }

  /** Pending assets of a nonce, in no particular order. */
  assetsOf(nonce: number): readonly MintStateRecord[] {
    return [...(this.#carried.get(nonce)?.values() ?? [])];
  }

  /** Variants of a nonce, the oldest first; empty when there are none, or they were forgotten. */
  variantsOf(nonce: number): readonly MintTransactionRecord[] {
    return this.#transactions.get(nonce) ?? [];
  }

  /** How many nonces an attempt has had. All but the last were spent without minting it. */
  triesOf(state: Pick<MintStateRecord, 'attemptId'>): number {
    return this.#carriers.get(toAttemptKey(state))?.size ?? 0;
  }

  /** Nonces whose transactions can be deleted: all their assets are settled. */
  get forgettable(): readonly number[] {
    const isSettled = ({ assets }: MintTransactionRecord) =>
      !assets.some((asset) => this.#pending.has(toAttemptKey(asset)));
    return [...this.#transactions].filter(([, variants]) => variants.every(isSettled)).map(([nonce]) => nonce);
  }

  /** True when the signer has no pending assets. */
  get isIdle(): boolean {
    return this.#pending.size === 0;
  }
}
