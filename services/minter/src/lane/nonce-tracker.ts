import type { BlockName } from '@playline/chain';
import { type MintStateRecord, toHexText } from '@playline/contracts';
import type { LaneChange, MintReceipt, SendOutcome } from '../ports.ts';
import {
  findForeignTransaction,
  findOutcome,
  type NonceOutcome,
  type Settling,
  settleNonce,
} from '../steps/settle-nonces.ts';
import { signNoop, signRaise } from '../steps/sign-variant.ts';
import { changeAll, isolate, type LaneTurn } from './lane-context.ts';
import { isInBlock } from './mint-ledger.ts';

export interface NonceTrackerParts {
  readonly append: (change: Partial<LaneChange>) => Promise<void>;
  readonly activityIdOf: Settling['activityIdOf'];
}

/** Outcomes that are reported only when they are repeated. */
const TRANSIENT = new Set<SendOutcome['kind']>(['nonce-used', 'deferred']);

/** Outcomes that higher fees cannot change. */
const UNAFFECTED_BY_FEES = new Set<SendOutcome['kind']>(['nonce-used', 'unfunded', 'refused']);

/** Tracks the outcome of open nonces, whether their transactions were sent, and why they are stuck. */
export class NonceTracker {
  readonly #parts: NonceTrackerParts;
  /** When this process first sent a nonce's newest variant. */
  readonly #sent = new Map<number, { readonly variant: number; readonly atMs: number }>();
  /** The outcome of the last send. */
  readonly #refusals = new Map<number, SendOutcome['kind']>();
  readonly #reasons = new Map<number, string>();
  readonly #capped = new Set<number>();
  /** The blocks of transactions that are not final. */
  readonly #blocks = new Map<number, BlockName>();
  #resentAt = Number.NEGATIVE_INFINITY;

  constructor(parts: NonceTrackerParts) {
    this.#parts = parts;
  }

  reasonOf(nonce: number): string | null {
    const cap = 'The transaction is not in a block, and its fees are at the maximum.';
    return this.#reasons.get(nonce) ?? (this.#capped.has(nonce) ? cap : null);
  }

  /** @returns the open nonces whose transaction is not in a block */
  async settle(turn: LaneTurn): Promise<readonly number[]> {
    const { head, ledger, clock, lane } = turn;
    const { activityIdOf } = this.#parts;
    this.#retain(ledger.openNonces);
    await this.#checkBlocks(turn);
    const absent: number[] = [];
    const states: MintStateRecord[] = [];
    const found = new Map<number, BlockName>();
    const settling = { ledger, chain: lane.chain, activityIdOf, changedAt: clock.wallClockMs() };
    const settleOne = async (nonce: number) => {
      if (this.#hasUnfinalBlock(nonce, head)) return;
      const outcome = await this.#findOutcome(turn, nonce);
      if (outcome.kind !== 'absent') {
        for (const each of settleNonce(settling, nonce, outcome)) states.push(each);
        this.#clear(nonce);
        if (outcome.kind === 'mined' && !outcome.isFinal) found.set(nonce, toBlockName(outcome.receipt));
        return;
      }
      absent.push(nonce);
      // A reorganisation replaced the block, and pools have dropped the transaction.
      if (ledger.assetsOf(nonce).some(isInBlock)) this.#sent.delete(nonce);
      for (const each of settleNonce({ ...settling, reason: this.reasonOf(nonce) }, nonce, outcome)) states.push(each);
    };
    const onFault = (nonce: number) => (message: string) =>
      void this.#reasons.set(nonce, `The transaction's outcome cannot be read: ${message}.`);
    try {
      for (const nonce of ledger.openNonces) await isolate(turn, () => settleOne(nonce), onFault(nonce));
    } finally {
      // Writes the outcomes found before the node failed. Blocks are remembered only once the states are written.
      await this.#parts.append({ states });
      for (const [nonce, block] of found) this.#blocks.set(nonce, block);
    }
    return absent;
  }

  /** Receipts are read only when the block is found, and again when it is final. */
  #hasUnfinalBlock(nonce: number, { finalized }: LaneTurn['head']): boolean {
    return (this.#blocks.get(nonce)?.number ?? -1) > finalized;
  }

  /** Checks the highest block first. If it is unchanged, the earlier blocks are unchanged as well. */
  async #checkBlocks({ node }: LaneTurn): Promise<void> {
    const numbers = new Set([...this.#blocks.values()].map(({ number }) => number));
    for (const number of [...numbers].sort((one, other) => other - one)) {
      const hash = await node.blockHashOf(number);
      const found = [...this.#blocks].filter(([, block]) => block.number === number);
      for (const [nonce, block] of found) if (block.hash !== hash) this.#blocks.delete(nonce);
      if (found.some(([, block]) => block.hash === hash)) return;
    }
  }

  async #findOutcome(turn: LaneTurn, nonce: number): Promise<NonceOutcome> {
    const variants = turn.ledger.variantsOf(nonce);
    const outcome = await findOutcome(turn.node, variants, turn.head);
    const isNonceUsed = this.#refusals.get(nonce) === 'nonce-used' && this.#isDue(turn);
    return outcome.kind === 'absent' && isNonceUsed ? findForeignTransaction(turn, nonce, variants) : outcome;
  }

  #isDue({ clock, rules }: LaneTurn): boolean {
    return clock.monotonicMs() - this.#resentAt >= rules.resendEveryMs;
  }

  /** Resends transactions, because pools drop them, and because nodes and blocks are replaced. */
  async resend(turn: LaneTurn, absent: readonly number[]): Promise<void> {
    const isDue = this.#isDue(turn);
    if (isDue) this.#resentAt = turn.clock.monotonicMs();
    // A used nonce does not block the following nonces.
    const first = absent.find((nonce) => this.#refusals.get(nonce) !== 'nonce-used');
    const resendOne = async (nonce: number) => {
      if (nonce === first && this.#isStuck(turn, nonce)) await this.#raise(turn, nonce);
      if (isDue || !this.#isSent(turn, nonce)) await this.send(turn, nonce);
    };
    for (const nonce of absent)
      await isolate(
        turn,
        () => resendOne(nonce),
        (message) => void this.#reasons.set(nonce, `The transaction cannot be sent: ${message}.`),
      );
    await this.#writeReasons(turn);
  }

  /** Sends the newest variant. Guarantee: only logged bytes are sent. */
  async send(turn: LaneTurn, nonce: number): Promise<void> {
    const newest = turn.ledger.variantsOf(nonce).at(-1)!;
    const { kind } = await turn.node.send(newest.signedBytes);
    if (!this.#isSent(turn, nonce)) this.#sent.set(nonce, { variant: newest.variant, atMs: turn.clock.monotonicMs() });
    if (kind === 'underpriced') await this.#raise(turn, nonce);
    if (kind !== 'refused' || newest.kind === 'noop') return this.#recordOutcome(turn, nonce, kind);
    await this.#parts.append(await signNoop(turn, nonce));
    const outcome = await turn.node.send(turn.ledger.variantsOf(nonce).at(-1)!.signedBytes);
    this.#recordOutcome(turn, nonce, outcome.kind);
  }

  #recordOutcome({ lane }: LaneTurn, nonce: number, kind: SendOutcome['kind']): void {
    const before = this.#refusals.get(nonce);
    const address = toHexText(lane.signer);
    this.#refusals.set(nonce, kind);
    const messages: Partial<Record<SendOutcome['kind'], string>> = {
      unfunded: `${address} does not have enough funds to pay for the transaction.`,
      'nonce-used': `Nonce ${nonce} of ${address} was used by a transaction that is not on the log, or for which the node has no receipt.`,
      deferred: 'The node does not accept the transaction at the moment.',
      refused: 'The node rejects the transaction and the replacement.',
    };
    const reason = messages[kind];
    if (reason === undefined) this.#reasons.delete(nonce);
    else if (!TRANSIENT.has(kind) || before === kind) this.#reasons.set(nonce, reason);
  }

  async #raise(turn: LaneTurn, nonce: number): Promise<void> {
    const raised = await signRaise(turn, nonce);
    if (raised === null) this.#capped.add(nonce);
    else {
      await this.#parts.append(raised);
      this.#capped.delete(nonce);
    }
  }

  #writeReasons(turn: LaneTurn): Promise<void> {
    const { ledger } = turn;
    const states = ledger.openNonces.flatMap((nonce) => {
      const reason = this.reasonOf(nonce);
      if (reason === null) return [];
      return ledger
        .assetsOf(nonce)
        .flatMap((state) => changeAll(turn, [state], isInBlock(state) ? { reason } : { stage: 'waiting', reason }));
    });
    return this.#parts.append({ states });
  }

  #isSent({ ledger }: LaneTurn, nonce: number): boolean {
    return this.#sent.get(nonce)?.variant === ledger.variantsOf(nonce).at(-1)!.variant;
  }

  #isStuck(turn: LaneTurn, nonce: number): boolean {
    if (!this.#isSent(turn, nonce) || UNAFFECTED_BY_FEES.has(this.#refusals.get(nonce) ?? 'accepted')) return false;
    return turn.clock.monotonicMs() - this.#sent.get(nonce)!.atMs >= turn.rules.stuckAfterMs;
  }

  #clear(nonce: number): void {
    this.#reasons.delete(nonce);
    this.#refusals.delete(nonce);
    this.#capped.delete(nonce);
  }

  #retain(open: readonly number[]): void {
    const isOpen = new Set(open);
    const trackedNonces = [this.#sent, this.#reasons, this.#refusals, this.#blocks].flatMap((each) => [...each.keys()]);
    for (const nonce of trackedNonces) {
      if (isOpen.has(nonce)) continue;
      this.#clear(nonce);
      this.#sent.delete(nonce);
      this.#blocks.delete(nonce);
    }
  }
}

const toBlockName = ({ blockNumber, blockHash }: MintReceipt): BlockName => ({ number: blockNumber, hash: blockHash });
