import type { BlockName } from '@playline/chain';
import { type MintStateRecord, toHexText } from '@playline/contracts';
import type { LaneChange, MintReceipt, SendAnswer } from '../ports.ts';
import {
  findForeignSpender,
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

/** Nodes may answer this for a moment only, so it counts when it is repeated. */
const MAY_BE_MOMENTARY = new Set<SendAnswer['kind']>(['spent', 'later']);

/** Answers that higher fees would not change. */
const NO_HELP = new Set<SendAnswer['kind']>(['spent', 'funds', 'refused']);

/** Looks after nonces that have begun: what became of them, whether they are sent, and why they do not go on. */
export class NonceTracker {
  readonly #parts: NonceTrackerParts;
  /** When this process first sent the newest variant of a nonce. */
  readonly #sent = new Map<number, { readonly variant: number; readonly atMs: number }>();
  /** The node's answer when a nonce was last sent. */
  readonly #refusals = new Map<number, SendAnswer['kind']>();
  readonly #reasons = new Map<number, string>();
  readonly #capped = new Set<number>();
  /** Blocks in which nonces were found that are not final. */
  readonly #placed = new Map<number, BlockName>();
  #resentAt = Number.NEGATIVE_INFINITY;

  constructor(parts: NonceTrackerParts) {
    this.#parts = parts;
  }

  /** Why a nonce is stuck; null: no reason is known. */
  reasonOf(nonce: number): string | null {
    const cap = 'Its transaction is in no block, and it may not offer higher fees.';
    return this.#reasons.get(nonce) ?? (this.#capped.has(nonce) ? cap : null);
  }

  /** @returns open nonces whose transactions are in no block */
  async settle(turn: LaneTurn): Promise<readonly number[]> {
    const { head, ledger, clock, lane } = turn;
    const { activityIdOf } = this.#parts;
    this.#keepOnly(ledger.openNonces);
    await this.#checkPlaces(turn);
    const absent: number[] = [];
    const states: MintStateRecord[] = [];
    const placed = new Map<number, BlockName>();
    const settling = { ledger, chain: lane.chain, activityIdOf, changedAt: clock.wallClockMs() };
    const settleOne = async (nonce: number) => {
      if (this.#isPlaced(nonce, head)) return;
      const fate = await this.#findFate(turn, nonce);
      if (fate.kind !== 'absent') {
        for (const each of settleNonce(settling, nonce, fate)) states.push(each);
        this.#clear(nonce);
        if (fate.kind === 'mined' && !fate.isFinal) placed.set(nonce, toBlockName(fate.receipt));
        return;
      }
      absent.push(nonce);
      // It was in a block that a reorganisation replaced, and the nodes' pools no longer have it.
      if (ledger.assetsOf(nonce).some(isInBlock)) this.#sent.delete(nonce);
      for (const each of settleNonce({ ...settling, reason: this.reasonOf(nonce) }, nonce, fate)) states.push(each);
    };
    const onFault = (nonce: number) => (words: string) =>
      void this.#reasons.set(nonce, `What became of its transaction cannot be read: ${words}.`);
    try {
      for (const nonce of ledger.openNonces) await isolate(turn, () => settleOne(nonce), onFault(nonce));
    } finally {
      // What was found before the node failed stands too. A place is remembered only once its state says so: nobody asks again.
      await this.#parts.append({ states });
      for (const [nonce, place] of placed) this.#placed.set(nonce, place);
    }
    return absent;
  }

  /** A receipt is read once when its block is found, and once more when that block is final. */
  #isPlaced(nonce: number, { finalized }: LaneTurn['head']): boolean {
    return (this.#placed.get(nonce)?.number ?? -1) > finalized;
  }

  /**
   * The last block that something was found in stands on those before it: one question tells of all. Where it is gone,
   * what was in there is looked for anew, and the last one before it is asked for. What this should miss is found out behind the horizon, where nothing is taken from memory.
   */
  async #checkPlaces({ node }: LaneTurn): Promise<void> {
    const numbers = new Set([...this.#placed.values()].map(({ number }) => number));
    for (const number of [...numbers].sort((one, other) => other - one)) {
      const hash = await node.blockHashOf(number);
      const found = [...this.#placed].filter(([, place]) => place.number === number);
      for (const [nonce, place] of found) if (place.hash !== hash) this.#placed.delete(nonce);
      if (found.some(([, place]) => place.hash === hash)) return;
    }
  }

  async #findFate(turn: LaneTurn, nonce: number): Promise<NonceOutcome> {
    const variants = turn.ledger.variantsOf(nonce);
    const fate = await findOutcome(turn.node, variants, turn.head);
    const isSpent = this.#refusals.get(nonce) === 'spent' && this.#isDue(turn);
    return fate.kind === 'absent' && isSpent ? findForeignSpender(turn, nonce, variants) : fate;
  }

  #isDue({ clock, rules }: LaneTurn): boolean {
    return clock.monotonicMs() - this.#resentAt >= rules.resendEveryMs;
  }

  /** Sends logged transactions that are in no block again and again: pools drop them, nodes and blocks are replaced. */
  async resend(turn: LaneTurn, absent: readonly number[]): Promise<void> {
    const isDue = this.#isDue(turn);
    if (isDue) this.#resentAt = turn.clock.monotonicMs();
    // A nonce that is spent holds up no other one: the next one may need higher fees.
    const first = absent.find((nonce) => this.#refusals.get(nonce) !== 'spent');
    const care = async (nonce: number) => {
      if (nonce === first && this.#isStuck(turn, nonce)) await this.#raise(turn, nonce);
      if (isDue || !this.#isSent(turn, nonce)) await this.send(turn, nonce);
    };
    for (const nonce of absent)
      await isolate(
        turn,
        () => care(nonce),
        (words) => void this.#reasons.set(nonce, `Its transaction cannot be sent: ${words}.`),
      );
    await this.#say(turn);
  }

  /** Guarantee: only bytes that are known to be in the log are ever sent. */
  async send(turn: LaneTurn, nonce: number): Promise<void> {
    const newest = turn.ledger.variantsOf(nonce).at(-1)!;
    const { kind } = await turn.node.send(newest.signedBytes);
    if (!this.#isSent(turn, nonce)) this.#sent.set(nonce, { variant: newest.variant, atMs: turn.clock.monotonicMs() });
    if (kind === 'underpriced') await this.#raise(turn, nonce);
    if (kind !== 'refused' || newest.kind === 'noop') return this.#note(turn, nonce, kind);
    await this.#parts.append(await signNoop(turn, nonce));
    const answer = await turn.node.send(turn.ledger.variantsOf(nonce).at(-1)!.signedBytes);
    this.#note(turn, nonce, answer.kind);
  }

  #note({ lane }: LaneTurn, nonce: number, kind: SendAnswer['kind']): void {
    const before = this.#refusals.get(nonce);
    const address = toHexText(lane.signer);
    this.#refusals.set(nonce, kind);
    const words: Partial<Record<SendAnswer['kind'], string>> = {
      funds: `${address} has not enough funds to pay for its transaction.`,
      spent: `Nonce ${nonce} of ${address} is spent by a transaction that is not known here, or that the node keeps no receipt of.`,
      later: 'The node does not take its transaction, and does not say for how long.',
      refused: 'The node refuses its transaction, and the one that would replace it.',
    };
    const said = words[kind];
    if (said === undefined) this.#reasons.delete(nonce);
    else if (!MAY_BE_MOMENTARY.has(kind) || before === kind) this.#reasons.set(nonce, said);
  }

  async #raise(turn: LaneTurn, nonce: number): Promise<void> {
    const raised = await signRaise(turn, nonce);
    if (raised === null) this.#capped.add(nonce);
    else {
      await this.#parts.append(raised);
      this.#capped.delete(nonce);
    }
  }

  /** Writes the reason of each stuck nonce to the states of its assets. */
  #say(turn: LaneTurn): Promise<void> {
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
    if (!this.#isSent(turn, nonce) || NO_HELP.has(this.#refusals.get(nonce) ?? 'taken')) return false;
    return turn.clock.monotonicMs() - this.#sent.get(nonce)!.atMs >= turn.rules.stuckAfterMs;
  }

  #clear(nonce: number): void {
    this.#reasons.delete(nonce);
    this.#refusals.delete(nonce);
    this.#capped.delete(nonce);
  }

  #keepOnly(open: readonly number[]): void {
    const standing = new Set(open);
    const known = [this.#sent, this.#reasons, this.#refusals, this.#placed].flatMap((each) => [...each.keys()]);
    for (const nonce of known) {
      if (standing.has(nonce)) continue;
      this.#clear(nonce);
      this.#sent.delete(nonce);
      this.#placed.delete(nonce);
    }
  }
}

const toBlockName = ({ blockNumber, blockHash }: MintReceipt): BlockName => ({ number: blockNumber, hash: blockHash });
