import type { MintRequestRecord, MintStateRecord, MintTransactionRecord } from '@playline/contracts';
import type { LaneChange, ReferenceName } from '../ports.ts';
import { DigestTable } from './digest-table.ts';
import { FailedAttempts, toAttemptKey } from './failed-attempts.ts';

export const toReferenceKey = ({ contractAddress, projectId, referenceId }: ReferenceName): string =>
  `${contractAddress.toString('hex')}:${projectId}:${referenceId}`;

/** Distinguishes the attempts for a reference id. Never 0. */
const toAttemptTag = ({ attemptId }: Pick<MintRequestRecord, 'attemptId'>): number => attemptId.readUInt32LE(0) || 1;

const compareOffsets = (one: MintStateRecord, other: MintStateRecord) =>
  one.requestPartition - other.requestPartition || one.requestOffset - other.requestOffset;

/** Whether the asset's transaction was in a block at the last check. */
export const isInBlock = ({ stage }: Pick<MintStateRecord, 'stage'>): boolean =>
  stage === 'mined' || stage === 'reverted';

/** A signer's state as derived from its records: pending assets, minted reference ids and failed attempts. */
export class MintLedger {
  readonly #pending = new Map<string, MintStateRecord>();
  /** null after every change. */
  #ordered: readonly MintStateRecord[] | null = null;
  /** Whether the keys are in request order. */
  #isOrdered = true;
  #last: MintStateRecord | null = null;
  /** Pending assets by nonce and attempt. */
  readonly #assetsByNonce = new Map<number, Map<string, MintStateRecord>>();
  /** The pending attempt by reference id. */
  readonly #holders = new Map<string, string>();
  /** The tag of the successful attempt by reference id. */
  readonly #minted = new DigestTable();
  readonly #transactions = new Map<number, MintTransactionRecord[]>();
  /** All nonces used by each attempt. */
  readonly #noncesByAttempt = new Map<string, Set<number>>();
  readonly failed = new FailedAttempts();
  #highWater: number | null = null;
  #genesisHash: Buffer | null = null;

  apply({ states, transactions, forgotten }: LaneChange): void {
    for (const state of states) this.#applyState(state);
    for (const transaction of transactions) this.#applyTransaction(transaction);
    for (const { nonce } of forgotten) this.#forget(nonce);
  }

  #applyState(state: MintStateRecord): void {
    const [attempt, reference] = [toAttemptKey(state), toReferenceKey(state)];
    this.#applyPending(attempt, state);
    if (state.status === 'pending') this.#holders.set(reference, attempt);
    else if (this.#holders.get(reference) === attempt) this.#holders.delete(reference);
    if (state.status === 'failed') this.failed.add(state);
    if (state.status === 'succeeded') this.#minted.set(reference, toAttemptTag(state));
  }

  #applyPending(attempt: string, state: MintStateRecord): void {
    const before = this.#pending.get(attempt);
    if (before !== undefined && before.nonce !== null) this.#removeFromNonce(before.nonce, attempt);
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
    const assets = this.#assetsByNonce.get(state.nonce) ?? new Map<string, MintStateRecord>();
    this.#assetsByNonce.set(state.nonce, assets.set(attempt, state));
  }

  #removeFromNonce(nonce: number, attempt: string): void {
    const assets = this.#assetsByNonce.get(nonce);
    assets?.delete(attempt);
    if (assets?.size === 0) this.#assetsByNonce.delete(nonce);
  }

  #applyTransaction(transaction: MintTransactionRecord): void {
    const { nonce, variant, kind, genesisHash } = transaction;
    this.#genesisHash = genesisHash;
    this.#highWater = Math.max(this.#highWater ?? -1, nonce);
    if (kind === 'high_water') return;
    for (const asset of transaction.assets) {
      const attempt = toAttemptKey(asset);
      this.#noncesByAttempt.set(attempt, (this.#noncesByAttempt.get(attempt) ?? new Set()).add(nonce));
    }
    const others = (this.#transactions.get(nonce) ?? []).filter((other) => other.variant !== variant);
    this.#transactions.set(
      nonce,
      [...others, transaction].sort((one, other) => one.variant - other.variant),
    );
  }

  #forget(nonce: number): void {
    for (const { assets } of this.#transactions.get(nonce) ?? [])
      for (const asset of assets) this.#noncesByAttempt.delete(toAttemptKey(asset));
    this.#transactions.delete(nonce);
  }

  get pending(): readonly MintStateRecord[] {
    if (!this.#isOrdered) this.#order();
    this.#ordered ??= [...this.#pending.values()];
    return this.#ordered;
  }

  /** Sorts the requests, which may come from several partitions. */
  #order(): void {
    const sorted = [...this.#pending].sort(([, one], [, other]) => compareOffsets(one, other));
    this.#pending.clear();
    for (const [attempt, state] of sorted) this.#pending.set(attempt, state);
    this.#last = sorted.at(-1)?.[1] ?? null;
    this.#isOrdered = true;
  }

  /** The highest logged nonce. */
  get highWater(): number | null {
    return this.#highWater;
  }

  /** The genesis hash of the chain for which all transactions were signed. */
  get genesisHash(): Buffer | null {
    return this.#genesisHash;
  }

  isHeld(request: ReferenceName): boolean {
    const reference = toReferenceKey(request);
    return this.#holders.has(reference) || this.#minted.get(reference) !== 0;
  }

  /** Whether the request was already handled. Of failed requests, only the latest are known. */
  isKnown(request: ReferenceName & Pick<MintRequestRecord, 'attemptId'>): boolean {
    if (this.failed.has(request)) return true;
    const reference = toReferenceKey(request);
    const holder = this.#holders.get(reference);
    return holder === undefined
      ? this.#minted.get(reference) === toAttemptTag(request)
      : holder === toAttemptKey(request);
  }

  /** Nonces with pending assets, in ascending order. */
  get openNonces(): readonly number[] {
    return [...this.#assetsByNonce.keys()].sort((one, other) => one - other);
  }

  /** Open nonces whose transaction was not in a block at the last check. */
  get absentNonces(): readonly number[] {
    return this.openNonces.filter((nonce) => !this.assetsOf(nonce).some(isInBlock));
  }

  assetsOf(nonce: number): readonly MintStateRecord[] {
    return [...(this.#assetsByNonce.get(nonce)?.values() ?? [])];
  }

  /** Returns the variants for a nonce, oldest first. */
  variantsOf(nonce: number): readonly MintTransactionRecord[] {
    return this.#transactions.get(nonce) ?? [];
  }

  /** Returns how many nonces an attempt has used. All but the last minted nothing. */
  triesOf(state: Pick<MintStateRecord, 'attemptId'>): number {
    return this.#noncesByAttempt.get(toAttemptKey(state))?.size ?? 0;
  }

  /** Nonces whose assets are all settled. */
  get forgettable(): readonly number[] {
    const isSettled = ({ assets }: MintTransactionRecord) =>
      !assets.some((asset) => this.#pending.has(toAttemptKey(asset)));
    return [...this.#transactions].filter(([, variants]) => variants.every(isSettled)).map(([nonce]) => nonce);
  }

  get isIdle(): boolean {
    return this.#pending.size === 0;
  }
}
