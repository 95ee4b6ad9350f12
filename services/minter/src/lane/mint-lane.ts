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
  readonly isUnlinked: (
    asset: Pick<MintStateRecord, 'chain' | 'contractAddress' | 'projectId' | 'requestedAt'>,
  ) => boolean;
}

/** Faults are shown only if they last this long. */
const FAULT_SHOWN_AFTER_MS = 5_000;
/** Every new reason costs one record per waiting asset. */
const FAULT_SHOWN_EVERY_MS = 60_000;
const FAULT_REASON_PREFIX = 'The chain node is currently unusable: ';
const FULL_REASON_PREFIX = 'Earlier transactions from the signer are not progressing: ';

const UNLINKED = 'The project has unlinked the collection.';

class ChainMismatch extends Error {
  override readonly name = 'ChainMismatch';
}

/** Turns requests into states, states into transactions, and results into states. Every step is written to the log. */
export class MintLane {
  readonly #parts: MintLaneParts;
  readonly #writer: LaneWriter;
  readonly #journal: LaneJournal;
  readonly #context: LaneContext;
  readonly #nonces: NonceTracker;
  #horizon: BlockName | null = null;
  #funds: bigint | null = null;
  #faults: readonly unknown[] = [];
  #faultySinceMs: number | null = null;
  #faultShownAtMs = Number.NEGATIVE_INFINITY;
  #pendingSinceMs: number | null = null;
  #accepting: Promise<unknown> = Promise.resolve();

  private constructor(parts: MintLaneParts, writer: LaneWriter, ledger: MintLedger) {
    this.#parts = parts;
    this.#writer = writer;
    this.#context = { ...parts, ledger };
    this.#journal = new LaneJournal(writer, this.ledger);
    const append = (change: Partial<LaneChange>) => this.#journal.append(change);
    this.#nonces = new NonceTracker({ append, activityIdOf: parts.activityIdOf });
  }

  /** Fences other writers and reads the log. */
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

  /** The number of the final block, or -1 if unknown. */
  get horizon(): number {
    return this.#horizon?.number ?? -1;
  }

  /** In wei, or null if unknown. */
  get funds(): bigint | null {
    return this.#funds;
  }

  /** Faults in the last turn that did not end the turn. */
  get faults(): readonly unknown[] {
    return this.#faults;
  }

  /** Monotonic time, or null if no assets are pending. */
  get pendingSinceMs(): number | null {
    return this.#pendingSinceMs;
  }

  /** Resolves when the states are on the log, so that the offset can be committed. Uses no nodes. @throws LaneLost */
  accept(requests: readonly ReceivedRequest[]): Promise<AcceptedRequests> {
    // Calls run one after another, so that each call sees the requests before it.
    const accepted = this.#accepting.then(() => this.#accept(requests));
    this.#accepting = accepted.catch(() => {});
    return accepted;
  }

  async #accept(requests: readonly ReceivedRequest[]): Promise<AcceptedRequests> {
    const { lane, clock, log } = this.#parts;
    await log.others.sync({ isWhole: false });
    await this.#checkHeld(requests);
    const newRequests = requests.map(({ request }) => request).filter((request) => !this.ledger.isHeld(request));
    const accepted = acceptRequests(this.ledger, requests, {
      changedAt: clock.wallClockMs(),
      forgotten: await this.ledger.failed.findForgotten(newRequests, () => this.#writer.readStates()),
      isHeldElsewhere: (request) => log.others.isHeldByOther(lane, request),
    });
    await this.#journal.append({ states: accepted.states });
    return accepted;
  }

  /** Checks that the lane was not taken over, because dropping a request writes nothing that would be fenced. */
  async #checkHeld(requests: readonly ReceivedRequest[]): Promise<void> {
    const { lane, log } = this.#parts;
    const isOutdated = () =>
      requests.some(({ request }) => this.ledger.isHeld(request) && !log.others.isHeldByLane(lane, request));
    if (!isOutdated()) return;
    await log.others.sync({ isWhole: true });
    if (isOutdated()) throw new LaneLost('another writer has taken over the signer');
  }

  /** Settles, resends and begins nonces with one node. @throws LaneLost, or the fault of the last node */
  async turn(): Promise<void> {
    this.#faults = [];
    await this.#forget();
    const nowMs = this.#parts.clock.monotonicMs();
    this.#pendingSinceMs = this.ledger.isIdle ? null : (this.#pendingSinceMs ?? nowMs);
    if (this.ledger.isIdle) return;
    const { nodes } = this.#parts;
    for (let remaining = nodes.count; ; remaining--) {
      const node = nodes.current;
      try {
        await this.#turnWith(node);
        [this.#faultySinceMs, this.#faultShownAtMs] = [null, Number.NEGATIVE_INFINITY];
        return await this.#clearReasons();
      } catch (fault) {
        if (fault instanceof LaneLost) throw fault;
        nodes.skip(node);
        if (remaining > 1) continue;
        return this.#writeFault(fault, nowMs);
      }
    }
  }

  async #turnWith(node: ChainNode): Promise<void> {
    const faults: unknown[] = [];
    const turn = { ...(await this.#connect(node)), faults };
    this.#faults = faults;
    const absent = await this.#nonces.settle(turn);
    await this.#nonces.resend(turn, absent);
    await this.#begin(turn);
    await this.#forget();
    this.#funds = await node.balanceOf(toHexText(turn.lane.signer));
    // The next node may work. If it fails as well, the node was not the cause.
    if (faults.length > 0) this.#parts.nodes.skip(node);
  }

  /** @throws ChainMismatch; NodeFault if the node lags or is on another branch */
  async #connect(node: ChainNode): Promise<Omit<LaneTurn, 'faults'>> {
    const previous = this.#horizon;
    const head = await node.head(previous?.number);
    const chainId = await node.chainId();
    const genesisHash = Buffer.from((await node.genesisHash()).slice(2), 'hex');
    const mismatch = findChainMismatch(this.#context, { chainId, genesisHash });
    if (mismatch !== null) throw new ChainMismatch(mismatch);
    if (previous !== null) checkHorizon(head, previous);
    if (previous === null || head.finalized > previous.number)
      this.#horizon = { number: head.finalized, hash: head.finalizedHash };
    const { number: finalized, hash: finalizedHash } = this.#horizon!;
    return { ...this.#context, node, genesisHash, head: { ...head, finalized, finalizedHash } };
  }

  /** Writes a lasting fault to the waiting assets as their reason. @throws the fault, unless the chain is wrong */
  async #writeFault(fault: unknown, begunAtMs: number): Promise<void> {
    if (fault instanceof ChainMismatch) {
      this.#faults = [fault];
      return this.wait(fault.message);
    }
    this.#faultySinceMs ??= begunAtMs;
    const nowMs = this.#parts.clock.monotonicMs();
    const isDue = nowMs - this.#faultShownAtMs >= FAULT_SHOWN_EVERY_MS;
    if (isDue && nowMs - this.#faultySinceMs >= FAULT_SHOWN_AFTER_MS) {
      this.#faultShownAtMs = nowMs;
      await this.#writeReason(`${FAULT_REASON_PREFIX}${toFaultMessage(fault)}.`);
    }
    throw fault;
  }

  async #writeReason(reason: string): Promise<void> {
    await this.wait(reason);
    const logged = this.ledger.pending.filter(({ nonce, stage }) => nonce !== null && stage === 'logged');
    await this.#journal.append({ states: changeAll(this.#context, logged, { stage: 'waiting', reason }) });
  }

  #clearReasons(): Promise<void> {
    const isFull = !this.#canBegin();
    const isObsolete = (reason: string) =>
      reason.startsWith(FAULT_REASON_PREFIX) || (!isFull && reason.startsWith(FULL_REASON_PREFIX));
    const candidates = this.ledger.pending.filter(
      ({ nonce, reason }) => nonce === null && reason !== null && isObsolete(reason),
    );
    return this.#journal.append({ states: changeAll(this.#context, candidates, { stage: 'accepted', reason: null }) });
  }

  /** Writes the reason to all assets without a nonce. @throws LaneLost */
  wait(reason: string): Promise<void> {
    const candidates = this.ledger.pending.filter(({ nonce }) => nonce === null);
    return this.#journal.append({ states: changeAll(this.#context, candidates, { stage: 'waiting', reason }) });
  }

  /** Fails the assets of unlinked collections, except assets that a signed transaction may mint. */
  failUnlinked(): Promise<void> {
    const ended = this.ledger.pending.filter((asset) => asset.nonce === null && this.#parts.isUnlinked(asset));
    const failed = { status: 'failed', stage: 'settled', reason: null, error: UNLINKED } as const;
    return this.#journal.append({ states: changeAll(this.#context, ended, failed) });
  }

  close(): Promise<void> {
    return this.#journal.close();
  }

  /** Deletes transactions whose assets are all settled. */
  #forget(): Promise<void> {
    const { ledger } = this;
    const forgotten = ledger.forgettable.flatMap((nonce) => ledger.variantsOf(nonce));
    return this.#journal.append({ forgotten });
  }

  async #begin(turn: LaneTurn): Promise<void> {
    const { ledger } = turn;
    const attemptIds = await this.#yieldToOthers(turn);
    const checked: Buffer[] = [];
    const isFree = ({ nonce, attemptId, contractAddress }: MintStateRecord) =>
      nonce === null && attemptIds.has(attemptId) && !checked.some((contract) => contract.equals(contractAddress));
    while (this.#canBegin()) {
      const candidates = ledger.pending.filter(isFree);
      const [first] = candidates;
      if (first === undefined) return;
      const ofCollection = candidates.filter(({ contractAddress }) => contractAddress.equals(first.contractAddress));
      const canContinue = await isolate(
        turn,
        () => this.#beginNonce(turn, ofCollection),
        (message) => this.#defer(first.contractAddress, `The collection's assets cannot be minted now: ${message}.`),
      );
      if (canContinue !== true) checked.push(first.contractAddress);
    }
    const reason = ledger.openNonces.map((nonce) => this.#nonces.reasonOf(nonce)).find((each) => each !== null);
    if (reason !== undefined) await this.wait(FULL_REASON_PREFIX + reason);
  }

  /** Nodes accept few pending transactions per address. Many more transactions may wait to become final. */
  #canBegin(): boolean {
    const { openNoncesMax, unfinalNoncesMax } = this.#parts.rules;
    const { openNonces, absentNonces } = this.ledger;
    return absentNonces.length < openNoncesMax && openNonces.length < unfinalNoncesMax;
  }

  #defer(contract: Buffer, reason: string): Promise<void> {
    const isFree = ({ nonce, contractAddress }: MintStateRecord) => nonce === null && contractAddress.equals(contract);
    const states = changeAll(this.#context, this.ledger.pending.filter(isFree), { stage: 'waiting', reason });
    return this.#journal.append({ states });
  }

  /**
   * Reads all signers' states after writing its own. If two signers accept a reference id, at least one signer
   * backs off. @returns the checked attempt ids, which are the same Buffers as in the states
   */
  async #yieldToOthers({ ledger, lane }: LaneTurn): Promise<ReadonlySet<Buffer>> {
    const candidates = ledger.pending.filter(({ nonce }) => nonce === null);
    if (candidates.length === 0) return new Set();
    const { others } = this.#parts.log;
    await others.sync({ isWhole: true });
    // An operator has given up assets, so the log must be read again.
    if (candidates.some((asset) => !others.isPending(lane, asset)))
      throw new LaneLost('another writer has taken over the signer');
    const held = candidates.filter((asset) => ledger.triesOf(asset) === 0 && others.isHeldByOther(lane, asset));
    const error = 'Another signer for the collection is minting this reference id.';
    const states = changeAll(this.#context, held, { status: 'failed', stage: 'settled', reason: null, error });
    await this.#journal.append({ states });
    return new Set(candidates.map(({ attemptId }) => attemptId));
  }

  /** @returns whether the collection should be planned again */
  async #beginNonce(turn: LaneTurn, assets: readonly MintStateRecord[]): Promise<boolean> {
    const next = await findNextNonce(turn);
    if (next.kind === 'refused') {
      await this.wait(next.reason);
      return false;
    }
    const { plan, states } = await planMint(turn, assets);
    await this.#journal.append({ states });
    if (plan === null) return states.some(({ status }) => status === 'failed');
    await this.#journal.append(await signMint(turn, plan, next.nonce));
    await this.#nonces.send(turn, next.nonce);
    return true;
  }
}

/** Limits transactions, because brokers abort a transaction after ten seconds. */
const BATCH_SIZE = 500;

/** Writes changes in sequence and applies them to the ledger. */
export class LaneJournal {
  readonly #writer: Pick<LaneWriter, 'append' | 'close'>;
  readonly #ledger: MintLedger;
  #writing: Promise<void> = Promise.resolve();

  constructor(writer: Pick<LaneWriter, 'append' | 'close'>, ledger: MintLedger) {
    this.#writer = writer;
    this.#ledger = ledger;
  }

  /**
   * Applies each change after its commit. Signed bytes and their assets' states are written in one transaction.
   * @throws LaneLost, also for every later change
   */
  append({ states = [], transactions = [], forgotten = [] }: Partial<LaneChange>): Promise<void> {
    if (states.length + transactions.length + forgotten.length === 0) return Promise.resolve();
    const change = { states, transactions, forgotten };
    const written = this.#writing.then(async () => {
      for (const batch of transactions.length > 0 ? [change] : toBatches(change)) {
        await this.#writer.append(batch);
        this.#ledger.apply(batch);
      }
    });
    this.#writing = written.catch((cause: unknown) => {
      throw new LaneLost('the outcome of a write is unknown', { cause });
    });
    return this.#writing;
  }

  close(): Promise<void> {
    return this.#writer.close();
  }
}

function toBatches({ states, forgotten }: LaneChange): readonly LaneChange[] {
  const empty: LaneChange = { states: [], transactions: [], forgotten: [] };
  return [
    ...splitIntoBatches(states).map((batch) => ({ ...empty, states: batch })),
    ...splitIntoBatches(forgotten).map((batch) => ({ ...empty, forgotten: batch })),
  ];
}

const splitIntoBatches = <T>(all: readonly T[]): readonly (readonly T[])[] =>
  Array.from({ length: Math.ceil(all.length / BATCH_SIZE) }, (_, at) =>
    all.slice(at * BATCH_SIZE, (at + 1) * BATCH_SIZE),
  );

type NextNonce =
  | { readonly kind: 'nonce'; readonly nonce: number }
  | { readonly kind: 'refused'; readonly reason: string };

const refused = (reason: string): NextNonce => ({ kind: 'refused', reason });

function findChainMismatch(
  { ledger, rules }: Pick<LaneContext, 'ledger' | 'rules'>,
  { chainId, genesisHash }: { readonly chainId: number; readonly genesisHash: Buffer },
): string | null {
  if (chainId !== rules.chainId) return `The node is on chain ${chainId}, but chain ${rules.chainId} is configured.`;
  if (ledger.genesisHash === null || ledger.genesisHash.equals(genesisHash)) return null;
  return 'The node is on a different chain than the earlier transactions.';
}

/**
 * Returns one more than the highest logged nonce, unless an unknown transaction uses that nonce. A signer without
 * records begins after its final transactions, and only if it has no other transactions.
 */
async function findNextNonce({ lane, ledger, node, head }: LaneTurn): Promise<NextNonce> {
  const address = toHexText(lane.signer);
  if (ledger.highWater !== null) {
    const nonce = ledger.highWater + 1;
    const [latest = 0, pending = 0] = await node.nonceCounts(address, ['latest', 'pending']);
    if (latest > nonce)
      return refused(
        'The chain contains transactions from this address that are not on the log. Another program uses its key.',
      );
    // If an earlier transaction's record was lost, the next transaction would compete for the same nonce.
    if (pending <= nonce) return { kind: 'nonce', nonce };
    return refused(
      'The node has a pending transaction from this address that is not on the log. Another program uses its key, or the log was truncated.',
    );
  }
  // The final count is read first, so a transaction sent in between can only raise the later counts.
  const [nonce = 0, latest = 0, pending = 0] = await node.nonceCounts(address, [head.finalized, 'latest', 'pending']);
  if (latest <= nonce && pending <= nonce) return { kind: 'nonce', nonce };
  return refused('The address has transactions that are neither final nor on the log.');
}
