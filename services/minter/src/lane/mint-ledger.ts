import type { MintRequestRecord, MintStateRecord, MintTransactionRecord } from '@playline/contracts';
import type { LaneChange, LaneRecords } from '../ports.ts';

/** A reference id of a collection. */
export const toReferenceKey = ({
  contractAddress,
  referenceId,
}: Pick<MintRequestRecord, 'contractAddress' | 'referenceId'>): string =>
  `${contractAddress.toString('hex')}:${referenceId}`;

export const toAttemptKey = ({ attemptId }: Pick<MintRequestRecord, 'attemptId'>): string => attemptId.toString('hex');

const comparePlaces = (one: MintStateRecord, other: MintStateRecord) =>
  one.requestPartition - other.requestPartition || one.requestOffset - other.requestOffset;

/** Whether a transaction of its nonce stands in a block, as of the last look. */
export const isInBlock = ({ stage }: Pick<MintStateRecord, 'stage'>): boolean =>
  stage === 'mined' || stage === 'reverted';

/**
 * What the log says of one signer, in memory. It follows from records alone, in whatever process, so two that have read the
 * same log decide by the same.
 */
export class MintLedger {
  readonly #pending = new Map<string, MintStateRecord>();
  /** The same in order, until something changes. */
  #ordered: readonly MintStateRecord[] | null = null;
  /** The keys of pending assets are in the order of their requests. */
  #isOrdered = true;
  #last: MintStateRecord | null = null;
  /** Pending assets that a nonce carries, by nonce and attempt. */
  readonly #carried = new Map<number, Map<string, MintStateRecord>>();
  /** Which attempt has a reference id: one that is pending or has succeeded. */
  readonly #holders = new Map<string, string>();
  readonly #transactions = new Map<number, MintTransactionRecord[]>();
  /** Nonces that have carried an attempt. */
  readonly #carriers = new Map<string, Set<number>>();
  /** Attempts that failed: read again, however much later, they stay what they are. Some 100 bytes each. */
  readonly #failed = new Set<string>();
  #highWater: number | null = null;
  #genesisHash: Buffer | null = null;

  constructor({ states, transactions }: LaneRecords) {
    this.apply({ states, transactions, forgotten: [] });
  }

  /** Follows what stands in the log. */
  apply({ states, transactions, forgotten }: LaneChange): void {
    for (const state of states) this.#applyState(state);
    for (const transaction of transactions) this.#applyTransaction(transaction);
    for (const { nonce } of forgotten) this.#forget(nonce);
  }

  #applyState(state: MintStateRecord): void {
    const [attempt, reference] = [toAttemptKey(state), toReferenceKey(state)];
    this.#follow(attempt, state);
    if (state.status === 'failed') this.#failed.add(attempt);
    if (state.status !== 'failed') this.#holders.set(reference, attempt);
    else if (this.#holders.get(reference) === attempt) this.#holders.delete(reference);
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
      if (this.#last !== null && comparePlaces(this.#last, state) > 0) this.#isOrdered = false;
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

  /** Where requests of several partitions come in, their order is made anew; else it is that of the log. */
  #order(): void {
    const sorted = [...this.#pending].sort(([, one], [, other]) => comparePlaces(one, other));
    this.#pending.clear();
    for (const [attempt, state] of sorted) this.#pending.set(attempt, state);
    this.#last = sorted.at(-1)?.[1] ?? null;
    this.#isOrdered = true;
  }

  /** The largest nonce that was ever logged; null: none ever was. */
  get highWater(): number | null {
    return this.#highWater;
  }

  /** Of the chain that everything was signed for; null: nothing ever was. */
  get genesisHash(): Buffer | null {
    return this.#genesisHash;
  }

  /** Whether an attempt of the reference id is pending or has succeeded. */
  isHeld(request: Pick<MintRequestRecord, 'contractAddress' | 'referenceId'>): boolean {
    return this.#holders.has(toReferenceKey(request));
  }

  /** Whether it was decided about this very request already. */
  isKnown(request: Pick<MintRequestRecord, 'contractAddress' | 'referenceId' | 'attemptId'>): boolean {
    const attempt = toAttemptKey(request);
    return this.#failed.has(attempt) || this.#holders.get(toReferenceKey(request)) === attempt;
  }

  /** Nonces that carry a pending asset, in order: each must end behind the horizon before anything of it is free. */
  get openNonces(): readonly number[] {
    return [...this.#carried.keys()].sort((one, other) => one - other);
  }

  /** Those of them whose transactions stand in no block, as of the last look. */
  get absentNonces(): readonly number[] {
    return this.openNonces.filter((nonce) => !this.assetsOf(nonce).some(isInBlock));
  }

  /** Pending assets that a nonce carries, in no order. */
  assetsOf(nonce: number): readonly MintStateRecord[] {
    return [...(this.#carried.get(nonce)?.values() ?? [])];
  }

  /** Variants of a nonce, the first one first; empty when there is none, or none any more. */
  variantsOf(nonce: number): readonly MintTransactionRecord[] {
    return this.#transactions.get(nonce) ?? [];
  }

  /** How many nonces have carried an attempt: all but the last are spent, and minted nothing of it. */
  triesOf(state: Pick<MintStateRecord, 'attemptId'>): number {
    return this.#carriers.get(toAttemptKey(state))?.size ?? 0;
  }

  /** Nonces whose transactions nothing depends on any more: every asset that they carried is settled. */
  get forgettable(): readonly number[] {
    const isSettled = ({ assets }: MintTransactionRecord) =>
      !assets.some((asset) => this.#pending.has(toAttemptKey(asset)));
    return [...this.#transactions].filter(([, variants]) => variants.every(isSettled)).map(([nonce]) => nonce);
  }

  /** Whether anything is left to be done for the signer. */
  get isIdle(): boolean {
    return this.#pending.size === 0;
  }
}
