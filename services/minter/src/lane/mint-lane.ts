import type { BlockName } from '@playline/chain';
import { type MintStateRecord, toHexText } from '@playline/contracts';
import type { ChainNode, ChainNodes, LaneChange, LaneWriter, MintLog, ReceivedRequest } from '../ports.ts';
import { type AcceptedRequests, acceptRequests } from '../steps/accept-requests.ts';
import { planMint } from '../steps/plan-mint.ts';
import { checkHorizon, type Settling } from '../steps/settle-nonces.ts';
import { signMint } from '../steps/sign-variant.ts';
import { changeAll, isolate, type LaneContext, LaneLost, type LaneTurn, toFaultMessage } from './lane-context.ts';
import { MintLedger } from './mint-ledger.ts';
import { NonceTracker } from './nonce-tracker.ts';

export interface MintLaneParts extends Omit<LaneContext, 'ledger'> {
  readonly nodes: ChainNodes;
  readonly log: MintLog;
  readonly activityIdOf: Settling['activityIdOf'];
  /** Whether the collection of an asset no longer belongs to the project that requested it. */
  readonly isUnlinked: (
    asset: Pick<MintStateRecord, 'chain' | 'contractAddress' | 'projectId' | 'requestedAt'>,
  ) => boolean;
}

/** A node that stumbles once is nobody's reason to wait. */
const FAULT_SHOWN_AFTER_MS = 5_000;
/** Failing nodes change their message all the time, and each new reason is a record for each waiting asset. */
const FAULT_SHOWN_EVERY_MS = 60_000;
const FAULT_REASONS = 'The node of the chain cannot be worked with now: ';
const FULL_REASON = 'Earlier transactions of its signer do not go on: ';

/** Shown to the project that requested the asset. */
const UNLINKED = 'The project has unlinked the collection.';

/** The node serves another chain, so none of its answers can be used. */
class ChainMistake extends Error {
  override readonly name = 'ChainMistake';
}

/**
 * Opens the log of a signer and works for it: requests become states, states become transactions, and results of the
 * chain become states again. Every decision is in the log, so the process can die at any step: the next one reads the
 * log and goes on.
 */
export class MintLane {
  readonly #parts: MintLaneParts;
  readonly #writer: LaneWriter;
  readonly #journal: LaneJournal;
  readonly #context: LaneContext;
  readonly #care: NonceTracker;
  #horizon: BlockName | null = null;
  #funds: bigint | null = null;
  #faults: readonly unknown[] = [];
  #faultySinceMs: number | null = null;
  #faultToldAtMs = Number.NEGATIVE_INFINITY;
  #pendingSinceMs: number | null = null;
  #taking: Promise<unknown> = Promise.resolve();

  private constructor(parts: MintLaneParts, writer: LaneWriter, ledger: MintLedger) {
    this.#parts = parts;
    this.#writer = writer;
    this.#context = { ...parts, ledger };
    this.#journal = new LaneJournal(writer, this.ledger);
    const append = (change: Partial<LaneChange>) => this.#journal.append(change);
    this.#care = new NonceTracker({ append, activityIdOf: parts.activityIdOf });
  }

  /** Fences any other writer of the signer and reads the log. @throws Error when the log does not answer */
  static async takeOver(parts: MintLaneParts): Promise<MintLane> {
    const writer = await parts.log.openWriter(parts.lane);
    const ledger = new MintLedger();
    try {
      for await (const state of writer.readStates()) ledger.apply({ states: [state], transactions: [], forgotten: [] });
      ledger.apply({ states: [], transactions: await writer.readTransactions(), forgotten: [] });
    } catch (fault) {
      await writer.close();
      throw fault;
    }
    return new MintLane(parts, writer, ledger);
  }

  get ledger(): MintLedger {
    return this.#context.ledger;
  }

  /** The last final block that a node has reported; -1: none yet. */
  get horizon(): number {
    return this.#horizon?.number ?? -1;
  }

  /** Balance of the signer at the last turn, in wei; null: no node has reported it. */
  get funds(): bigint | null {
    return this.#funds;
  }

  /** Faults of the last turn that did not end it: of single collections and nonces, or that no node has the chain. */
  get faults(): readonly unknown[] {
    return this.#faults;
  }

  /** Since when something is pending, by the monotonic clock; null: nothing is. */
  get pendingSinceMs(): number | null {
    return this.#pendingSinceMs;
  }

  /**
   * Accepts requests in the order of their log. Their states are in the log when this resolves: only then may the
   * consumer offset be committed. Does not wait for nodes.
   * @throws LaneOver
   */
  take(requests: readonly ReceivedRequest[]): Promise<AcceptedRequests> {
    // One after the other, so that each knows what the one before has accepted.
    const taken = this.#taking.then(() => this.#take(requests));
    this.#taking = taken.catch(() => {});
    return taken;
  }

  async #take(requests: readonly ReceivedRequest[]): Promise<AcceptedRequests> {
    const { lane, clock, log } = this.#parts;
    await log.others.sync({ isWhole: false });
    await this.#checkHoldings(requests);
    const free = requests.map(({ request }) => request).filter((request) => !this.ledger.isHeld(request));
    const accepted = acceptRequests(this.ledger, requests, {
      changedAt: clock.wallClockMs(),
      forgotten: await this.ledger.failed.forgottenAmong(free, () => this.#writer.readStates()),
      isHeldElsewhere: (request) => log.others.isHeldByOther(lane, request),
    });
    await this.#journal.append({ states: accepted.states });
    return accepted;
  }

  /** A dropped request leaves no record, so no fence would tell an outdated writer. @throws LaneOver if the log disagrees */
  async #checkHoldings(requests: readonly ReceivedRequest[]): Promise<void> {
    const { lane, log } = this.#parts;
    const isOutdated = () =>
      requests.some(({ request }) => this.ledger.isHeld(request) && !log.others.isHeldByLane(lane, request));
    if (!isOutdated()) return;
    await log.others.sync({ isWhole: true });
    if (isOutdated()) throw new LaneLost('somebody else has written for the signer');
  }

  /**
   * Does once all that can be done now: looks what became of open nonces, sends what is in no block, begins new ones. One
   * node answers all of it; where it cannot, the next one is asked for all of it.
   * @throws LaneOver; anything else is of the last node that was asked, and the next turn begins anew
   */
  async turn(): Promise<void> {
    this.#faults = [];
    await this.#forget();
    const nowMs = this.#parts.clock.monotonicMs();
    this.#pendingSinceMs = this.ledger.isIdle ? null : (this.#pendingSinceMs ?? nowMs);
    if (this.ledger.isIdle) return;
    const { nodes } = this.#parts;
    for (let left = nodes.count; ; left--) {
      const node = nodes.current;
      try {
        await this.#turnWith(node);
        [this.#faultySinceMs, this.#faultToldAtMs] = [null, Number.NEGATIVE_INFINITY];
        return await this.#unsay();
      } catch (fault) {
        if (fault instanceof LaneLost) throw fault;
        nodes.skip(node);
        if (left > 1) continue;
        return this.#tell(fault, nowMs);
      }
    }
  }

  async #turnWith(node: ChainNode): Promise<void> {
    const faults: unknown[] = [];
    const turn = { ...(await this.#look(node)), faults };
    this.#faults = faults;
    const absent = await this.#care.settle(turn);
    await this.#care.resend(turn, absent);
    await this.#begin(turn);
    await this.#forget();
    this.#funds = await node.balanceOf(toHexText(turn.lane.signer));
    // The next one may know better; if it does not either, it was not the node.
    if (faults.length > 0) this.#parts.nodes.skip(node);
  }

  /** @throws ChainMistake; NodeFault for a node that lags, or has another block than the final one */
  async #look(node: ChainNode): Promise<Omit<LaneTurn, 'faults'>> {
    const known = this.#horizon;
    const head = await node.head(known?.number);
    const chainId = await node.chainId();
    const genesisHash = Buffer.from((await node.genesisHash()).slice(2), 'hex');
    const mistake = findChainMistake(this.#context, { chainId, genesisHash });
    if (mistake !== null) throw new ChainMistake(mistake);
    if (known !== null) checkHorizon(head, known);
    if (known === null || head.finalized > known.number)
      this.#horizon = { number: head.finalized, hash: head.finalizedHash };
    const { number: finalized, hash: finalizedHash } = this.#horizon!;
    return { ...this.#context, node, genesisHash, head: { ...head, finalized, finalizedHash } };
  }

  /** Writes a lasting fault as the reason of waiting assets. @throws the fault, unless the chain is the wrong one */
  async #tell(fault: unknown, begunAtMs: number): Promise<void> {
    if (fault instanceof ChainMistake) {
      this.#faults = [fault];
      return this.wait(fault.message);
    }
    this.#faultySinceMs ??= begunAtMs;
    const nowMs = this.#parts.clock.monotonicMs();
    const isDue = nowMs - this.#faultToldAtMs >= FAULT_SHOWN_EVERY_MS;
    if (isDue && nowMs - this.#faultySinceMs >= FAULT_SHOWN_AFTER_MS) {
      this.#faultToldAtMs = nowMs;
      await this.#say(`${FAULT_REASONS}${toFaultMessage(fault)}.`);
    }
    throw fault;
  }

  async #say(reason: string): Promise<void> {
    await this.wait(reason);
    const logged = this.ledger.pending.filter(({ nonce, stage }) => nonce !== null && stage === 'logged');
    await this.#journal.append({ states: changeAll(this.#context, logged, { stage: 'waiting', reason }) });
  }

  /** Removes reasons that no longer hold. */
  #unsay(): Promise<void> {
    const isFull = !this.#hasRoom();
    const isOver = (reason: string) => reason.startsWith(FAULT_REASONS) || (!isFull && reason.startsWith(FULL_REASON));
    const free = this.ledger.pending.filter(({ nonce, reason }) => nonce === null && reason !== null && isOver(reason));
    return this.#journal.append({ states: changeAll(this.#context, free, { stage: 'accepted', reason: null }) });
  }

  /** Writes a reason to all pending assets that have no nonce. @throws LaneOver */
  wait(reason: string): Promise<void> {
    const free = this.ledger.pending.filter(({ nonce }) => nonce === null);
    return this.#journal.append({ states: changeAll(this.#context, free, { stage: 'waiting', reason }) });
  }

  /** Ends assets whose project has unlinked their collection, unless a signed transaction may still mint them. */
  endUnlinked(): Promise<void> {
    const ended = this.ledger.pending.filter((asset) => asset.nonce === null && this.#parts.isUnlinked(asset));
    const failed = { status: 'failed', stage: 'settled', reason: null, error: UNLINKED } as const;
    return this.#journal.append({ states: changeAll(this.#context, ended, failed) });
  }

  close(): Promise<void> {
    return this.#journal.close();
  }

  /** Deletes transactions that nothing depends on any more: each of their nonces is spent by a final transaction. */
  #forget(): Promise<void> {
    const { ledger } = this;
    const forgotten = ledger.forgettable.flatMap((nonce) => ledger.variantsOf(nonce));
    return this.#journal.append({ forgotten });
  }

  /** Begins new nonces while there are assets to mint and room for more. */
  async #begin(turn: LaneTurn): Promise<void> {
    const { ledger } = turn;
    const known = await this.#yieldToOthers(turn);
    const looked: Buffer[] = [];
    const isFree = ({ nonce, attemptId, contractAddress }: MintStateRecord) =>
      nonce === null && known.has(attemptId) && !looked.some((contract) => contract.equals(contractAddress));
    while (this.#hasRoom()) {
      const free = ledger.pending.filter(isFree);
      const [first] = free;
      if (first === undefined) return;
      const ofSame = free.filter(({ contractAddress }) => contractAddress.equals(first.contractAddress));
      const isWorthIt = await isolate(
        turn,
        () => this.#beginOne(turn, ofSame),
        (words) => this.#waitOf(first.contractAddress, `Its collection cannot be worked with now: ${words}.`),
      );
      if (isWorthIt !== true) looked.push(first.contractAddress);
    }
    const reason = ledger.openNonces.map((nonce) => this.#care.reasonOf(nonce)).find((each) => each !== null);
    if (reason !== undefined) await this.wait(FULL_REASON + reason);
  }

  /**
   * Nodes keep few pending transactions of an address, so few nonces may be in no block. Many more may wait for
   * finality. The distinction is only a limit: a nonce is settled by its final block alone.
   */
  #hasRoom(): boolean {
    const { openNoncesMax, unfinalNoncesMax } = this.#parts.rules;
    const { openNonces, absentNonces } = this.ledger;
    return absentNonces.length < openNoncesMax && openNonces.length < unfinalNoncesMax;
  }

  #waitOf(contract: Buffer, reason: string): Promise<void> {
    const isFree = ({ nonce, contractAddress }: MintStateRecord) => nonce === null && contractAddress.equals(contract);
    const states = changeAll(this.#context, this.ledger.pending.filter(isFree), { stage: 'waiting', reason });
    return this.#journal.append({ states });
  }

  /**
   * An asset is begun only when no other signer uses its reference id, by a look at the log made after its own state
   * was written. If two signers accept one reference id at the same time, at least one sees the other and steps back:
   * both may fail, but never do both mint.
   * @returns attempt ids that the look covered, as the very Buffers that all states of an attempt share
   */
  async #yieldToOthers({ ledger, lane }: LaneTurn): Promise<ReadonlySet<Buffer>> {
    const free = ledger.pending.filter(({ nonce }) => nonce === null);
    if (free.length === 0) return new Set();
    const { others } = this.#parts.log;
    await others.sync({ isWhole: true });
    // An operator gave up some assets as the writer of this signer, so the log must be read again.
    if (free.some((asset) => !others.isPending(lane, asset)))
      throw new LaneLost('somebody else has written for the signer');
    const held = free.filter((asset) => ledger.triesOf(asset) === 0 && others.isHeldByOther(lane, asset));
    const error = 'Another signer of the collection has this reference id.';
    const states = changeAll(this.#context, held, { status: 'failed', stage: 'settled', reason: null, error });
    await this.#journal.append({ states });
    return new Set(free.map(({ attemptId }) => attemptId));
  }

  /** @returns whether anything of the collection has changed, so that it should be planned again in this turn */
  async #beginOne(turn: LaneTurn, assets: readonly MintStateRecord[]): Promise<boolean> {
    const next = await findNextNonce(turn);
    if (next.kind === 'refused') {
      await this.wait(next.reason);
      return false;
    }
    const { plan, states } = await planMint(turn, assets);
    await this.#journal.append({ states });
    if (plan === null) return states.some(({ status }) => status === 'failed');
    await this.#journal.append(await signMint(turn, plan, next.nonce));
    await this.#care.send(turn, next.nonce);
    return true;
  }
}

/** Records of one transaction, which then stays far below the ten seconds after which brokers abort it. */
const PIECE = 500;

/** Writes what a lane decides, one change after the other, and lets its ledger follow. */
export class LaneJournal {
  readonly #writer: Pick<LaneWriter, 'append' | 'close'>;
  readonly #ledger: MintLedger;
  #writing: Promise<void> = Promise.resolve();

  constructor(writer: Pick<LaneWriter, 'append' | 'close'>, ledger: MintLedger) {
    this.#writer = writer;
    this.#ledger = ledger;
  }

  /**
   * What is appended is followed only once it stands: nothing is ever decided by what may be lost. Signed bytes stand
   * together with all states of their assets; anything else is written in pieces, since each state counts by itself.
   * @throws LaneOver, from then on for ever
   */
  append({ states = [], transactions = [], forgotten = [] }: Partial<LaneChange>): Promise<void> {
    if (states.length + transactions.length + forgotten.length === 0) return Promise.resolve();
    const change = { states, transactions, forgotten };
    const written = this.#writing.then(async () => {
      for (const piece of transactions.length > 0 ? [change] : toPieces(change)) {
        await this.#writer.append(piece);
        this.#ledger.apply(piece);
      }
    });
    this.#writing = written.catch((cause: unknown) => {
      throw new LaneLost('what was written may not stand', { cause });
    });
    return this.#writing;
  }

  close(): Promise<void> {
    return this.#writer.close();
  }
}

function toPieces({ states, forgotten }: LaneChange): readonly LaneChange[] {
  const nothing: LaneChange = { states: [], transactions: [], forgotten: [] };
  return [
    ...inPieces(states).map((some) => ({ ...nothing, states: some })),
    ...inPieces(forgotten).map((some) => ({ ...nothing, forgotten: some })),
  ];
}

const inPieces = <T>(all: readonly T[]): readonly (readonly T[])[] =>
  Array.from({ length: Math.ceil(all.length / PIECE) }, (_, at) => all.slice(at * PIECE, (at + 1) * PIECE));

/** The nonce of the next new transaction, or why there is none. */
type NextNonce =
  | { readonly kind: 'nonce'; readonly nonce: number }
  | { readonly kind: 'refused'; readonly reason: string };

const refused = (reason: string): NextNonce => ({ kind: 'refused', reason });

/** Why the node's chain is not the one that the signer's transactions are for; null when it is. */
function findChainMistake(
  { ledger, rules }: Pick<LaneContext, 'ledger' | 'rules'>,
  { chainId, genesisHash }: { readonly chainId: number; readonly genesisHash: Buffer },
): string | null {
  if (chainId !== rules.chainId) return `The node serves the chain ${chainId}, and ${rules.chainId} is set.`;
  if (ledger.genesisHash === null || ledger.genesisHash.equals(genesisHash)) return null;
  return 'The node serves another chain than the one that earlier transactions were signed for.';
}

/**
 * Finds the next nonce: one more than the largest in the log, while no unknown transaction has taken it. A signer without records begins after its finalized
 * transactions, and not while it has others: after the loss of a log, it would reuse nonces that it has sent.
 */
async function findNextNonce({ lane, ledger, node, head }: LaneTurn): Promise<NextNonce> {
  const address = toHexText(lane.signer);
  if (ledger.highWater !== null) {
    const nonce = ledger.highWater + 1;
    const [latest = 0, pending = 0] = await node.spentNonces(address, ['latest', 'pending']);
    if (latest > nonce)
      return refused(
        'Transactions of this address stand in the chain that are not known here: somebody else has its key.',
      );
    // With a transaction of ours whose record was lost, the next one would compete for the nonce: whichever is in a
    // block, the assets of the other would be carried again, though they may be the same.
    if (pending <= nonce) return { kind: 'nonce', nonce };
    return refused(
      'The node has a transaction of this address that is in no block and not known here: somebody else has its key, or the end of the log was lost.',
    );
  }
  // The final count comes first: what is sent meanwhile makes the others larger, and then nothing begins.
  const [nonce = 0, latest = 0, pending = 0] = await node.spentNonces(address, [head.finalized, 'latest', 'pending']);
  if (latest <= nonce && pending <= nonce) return { kind: 'nonce', nonce };
  return refused('The address has transactions that are not final and not known here.');
}
