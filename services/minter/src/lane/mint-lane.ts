import type { MintStateRecord } from '@playline/contracts';
import { toHex } from '../chain/mint-calls.ts';
import type { LaneChange, LaneWriter, MintLog, PlacedRequest } from '../ports.ts';
import { type AcceptedRequests, acceptRequests } from '../steps/accept-requests.ts';
import { findChainMistake, findNextNonce } from '../steps/begin-nonce.ts';
import { planMint } from '../steps/plan-mint.ts';
import { findFate, settleNonce } from '../steps/settle-nonces.ts';
import { signMint, signNoop, signRaise } from '../steps/sign-variant.ts';
import { changeAll, type LaneContext, type LaneTurn } from './lane-context.ts';
import { MintLedger, toAttemptKey } from './mint-ledger.ts';

/** The writer of a lane is over: fenced, or it does not know what it has written. Whoever goes on takes over. */
export class LaneOver extends Error {
  override readonly name = 'LaneOver';
}

export interface MintLaneParts extends Omit<LaneContext, 'ledger'> {
  readonly log: MintLog;
  readonly activityIdOf: Parameters<typeof settleNonce>[0]['activityIdOf'];
}

const NOTHING: LaneChange = { states: [], transactions: [], forgotten: [] };

/**
 * Takes a signer over and works for it: requests become states, states become transactions, and what the chain says of these
 * becomes states again. Everything that it has ever decided is in the log, so it can end at any step: the next one reads that
 * and goes on.
 */
export class MintLane {
  readonly #parts: MintLaneParts;
  readonly #writer: LaneWriter;
  readonly #context: LaneContext;
  /** When bytes of a nonce were first sent by this process, by nonce and variant. */
  readonly #sentAt = new Map<string, number>();
  #horizon = -1;
  #resentAt = Number.NEGATIVE_INFINITY;
  #writing: Promise<void> = Promise.resolve();

  private constructor(parts: MintLaneParts, writer: LaneWriter) {
    this.#parts = parts;
    this.#writer = writer;
    this.#context = { ...parts, ledger: new MintLedger(writer.standing) };
  }

  /** @throws Error when the log does not answer */
  static async takeOver(parts: MintLaneParts): Promise<MintLane> {
    return new MintLane(parts, await parts.log.openWriter(parts.lane));
  }

  get ledger(): MintLedger {
    return this.#context.ledger;
  }

  /** Nothing up to this block changes any more, as far as a node has told; -1: none has. */
  get horizon(): number {
    return this.#horizon;
  }

  /**
   * Takes requests in the order of their log. They stand as states when this resolves: only then may their place in the log
   * move on. Waits for no node.
   * @throws LaneOver
   */
  async take(requests: readonly PlacedRequest[]): Promise<AcceptedRequests> {
    const { lane, clock, log } = this.#parts;
    await log.others.look({ isWhole: false });
    const accepted = acceptRequests(this.ledger, requests, {
      changedAt: clock.wallClockMs(),
      isHeldElsewhere: (request) => log.others.hold(lane, request),
    });
    await this.#append({ ...NOTHING, states: accepted.states });
    return accepted;
  }

  /**
   * Does once all that can be done now: looks what became of open nonces, sends what is in no block, begins new ones.
   * @throws LaneOver; anything else is a node that did not answer, and the next turn begins anew
   */
  async turn(): Promise<void> {
    await this.#forget();
    if (this.ledger.isIdle) return;
    const { node } = this.#parts;
    const head = await node.head();
    // Behind what others have called final: it is lagging, and nothing that it says of absence means anything.
    if (head.number < this.#horizon) return;
    this.#horizon = Math.max(this.#horizon, head.finalized);
    const genesisHash = Buffer.from((await node.genesisHash()).slice(2), 'hex');
    const mistake = findChainMistake(this.#context, genesisHash);
    if (mistake !== null) return this.wait(mistake);
    const turn = { ...this.#context, head: { ...head, finalized: this.#horizon }, genesisHash };
    const absent = await this.#settle(turn);
    await this.#resend(turn, absent);
    await this.#begin(turn);
    await this.#forget();
  }

  /** Says of everything that no nonce carries why it waits. @throws LaneOver */
  wait(reason: string): Promise<void> {
    const free = this.ledger.pending.filter(({ nonce }) => nonce === null);
    return this.#append({ ...NOTHING, states: changeAll(this.#context, free, { stage: 'waiting', reason }) });
  }

  close(): Promise<void> {
    return this.#writer.close();
  }

  /** What is appended is followed only once it stands: nothing is ever decided by what may be lost. */
  #append(change: LaneChange): Promise<void> {
    const { states, transactions, forgotten } = change;
    if (states.length + transactions.length + forgotten.length === 0) return Promise.resolve();
    const written = this.#writing.then(async () => {
      await this.#writer.append(change);
      this.ledger.apply(change);
    });
    this.#writing = written.catch((cause: unknown) => {
      throw new LaneOver('what was written may not stand', { cause });
    });
    return this.#writing;
  }

  /** Tombstones for transactions that nothing depends on any more: each of their nonces is spent behind the horizon. */
  #forget(): Promise<void> {
    const { ledger } = this;
    const forgotten = ledger.forgettable.flatMap((nonce) => ledger.variantsOf(nonce));
    return this.#append({ ...NOTHING, forgotten });
  }

  /** @returns open nonces that stand in no block */
  async #settle({ head, ledger, node, clock, lane }: LaneTurn): Promise<readonly number[]> {
    const { activityIdOf } = this.#parts;
    const absent: number[] = [];
    const states: MintStateRecord[] = [];
    for (const nonce of ledger.openNonces) {
      const fate = await findFate(node, ledger.variantsOf(nonce), head);
      if (fate.kind === 'absent') {
        absent.push(nonce);
        // It stood in a block that the chain has left, and nobody keeps such transactions.
        if (ledger.assetsOf(nonce).some(({ stage }) => stage !== 'logged'))
          this.#sentAt.delete(this.#keyOfNewest(ledger, nonce));
      }
      const settling = { ledger, chain: lane.chain, activityIdOf, changedAt: clock.wallClockMs() };
      states.push(...settleNonce(settling, nonce, fate));
    }
    await this.#append({ ...NOTHING, states });
    return absent;
  }

  /** Pools forget, nodes are replaced, blocks are left: what is logged and in no block is sent, again and again. */
  async #resend(turn: LaneTurn, absent: readonly number[]): Promise<void> {
    const { clock, rules } = turn;
    const [lowest] = absent;
    if (lowest !== undefined && this.#isStuck(turn, lowest)) await this.#raise(turn, lowest);
    const isDue = clock.monotonicMs() - this.#resentAt >= rules.resendEveryMs;
    if (isDue) this.#resentAt = clock.monotonicMs();
    for (const nonce of absent) if (isDue || !this.#isSent(turn, nonce)) await this.#send(turn, nonce);
  }

  #keyOfNewest(ledger: MintLedger, nonce: number): string {
    return `${nonce}:${ledger.variantsOf(nonce).at(-1)!.variant}`;
  }

  #isSent(turn: LaneTurn, nonce: number): boolean {
    return this.#sentAt.has(this.#keyOfNewest(turn.ledger, nonce));
  }

  #isStuck(turn: LaneTurn, nonce: number): boolean {
    const sentAt = this.#sentAt.get(this.#keyOfNewest(turn.ledger, nonce));
    return sentAt !== undefined && turn.clock.monotonicMs() - sentAt >= turn.rules.stuckAfterMs;
  }

  async #raise(turn: LaneTurn, nonce: number): Promise<void> {
    const raised = await signRaise(turn, nonce);
    if (raised !== null) await this.#append(raised);
  }

  /** The guarantee: only bytes that are known to stand in the log are ever sent. */
  async #send(turn: LaneTurn, nonce: number): Promise<void> {
    const newest = turn.ledger.variantsOf(nonce).at(-1)!;
    const answer = await turn.node.send(newest.signedBytes);
    const key = this.#keyOfNewest(turn.ledger, nonce);
    if (!this.#sentAt.has(key)) this.#sentAt.set(key, turn.clock.monotonicMs());
    if (answer.kind === 'underpriced') await this.#raise(turn, nonce);
    if (answer.kind !== 'refused' || newest.kind === 'noop') return;
    await this.#append(await signNoop(turn, nonce));
    await turn.node.send(turn.ledger.variantsOf(nonce).at(-1)!.signedBytes);
  }

  /** Begins new nonces as long as there is something to carry and room. */
  async #begin(turn: LaneTurn): Promise<void> {
    const { ledger, rules } = turn;
    const known = await this.#yieldToOthers(turn);
    const looked = new Set<string>();
    const isFree = (asset: MintStateRecord) =>
      asset.nonce === null && known.has(toAttemptKey(asset)) && !looked.has(toHex(asset.contractAddress));
    while (ledger.openNonces.length < rules.openNoncesMax) {
      const free = ledger.pending.filter(isFree);
      const [first] = free;
      if (first === undefined) return;
      const ofSame = free.filter(({ contractAddress }) => contractAddress.equals(first.contractAddress));
      if (!(await this.#beginOne(turn, ofSame))) looked.add(toHex(first.contractAddress));
    }
  }

  /**
   * An asset is begun only when no other signer holds its reference id, as of a look that came after its own state stood. Of
   * two that accepted one reference id at a time one at least sees the other, and whoever does steps back: both may fail, and
   * never do both mint.
   * @returns attempts that the look was for
   */
  async #yieldToOthers({ ledger, lane }: LaneTurn): Promise<ReadonlySet<string>> {
    const free = ledger.pending.filter(({ nonce }) => nonce === null);
    if (free.length === 0) return new Set();
    const { others } = this.#parts.log;
    await others.look({ isWhole: true });
    const held = free.filter((asset) => ledger.triesOf(asset) === 0 && others.hold(lane, asset));
    const error = 'Another signer of the collection has this reference id.';
    const states = changeAll(this.#context, held, { status: 'failed', stage: 'settled', reason: null, error });
    await this.#append({ ...NOTHING, states });
    return new Set(free.map(toAttemptKey));
  }

  /** @returns whether anything of the collection has moved, so that it is worth another look */
  async #beginOne(turn: LaneTurn, assets: readonly MintStateRecord[]): Promise<boolean> {
    const next = await findNextNonce(turn);
    if (next.kind === 'refused') {
      await this.wait(next.reason);
      return false;
    }
    const { plan, states } = await planMint(turn, assets);
    await this.#append({ ...NOTHING, states });
    if (plan === null) return states.some(({ status }) => status === 'failed');
    await this.#append(await signMint(turn, plan, next.nonce));
    await this.#send(turn, next.nonce);
    return true;
  }
}
