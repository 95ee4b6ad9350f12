import { activityIdOf } from '@playline/chain';
import { createRandom, type Random } from '@playline/testkit/random';
import { LaneLost } from '../lane/lane-context.ts';
import { MintLane } from '../lane/mint-lane.ts';
import { createNodeChoice } from '../pipeline.ts';
import type { ChainRules, LaneChange, MintLog, ReceivedRequest, SignerLane } from '../ports.ts';
import { checkEnd, type EndReport } from './campaign-end.ts';
import { CampaignTraffic } from './campaign-traffic.ts';
import { MemoryChain } from './memory-chain.ts';
import { MemoryMintLog } from './memory-mint-log.ts';
import { createMemorySigner, MemoryNode } from './memory-node.ts';
import { CHAIN, CONTRACTS, SIGNERS, toAddress } from './mint-requests.ts';

/** Deeper than any reorganisation in a run. */
const DEPTH = 32;
const REORG_MAX = 30;
/** The number of events with faults, and the maximum number of events without faults after them. */
const FAULT_EVENTS = 6_000;
const CALM_EVENTS_MAX = 60_000;
const RULES: ChainRules = {
  chainId: 31_337,
  gasMax: 8_000_000,
  feeMax: 20_000n,
  priorityFeeMax: 5_000n,
  stuckAfterMs: 12_000,
  resendEveryMs: 10_000,
  openNoncesMax: 4,
  unfinalNoncesMax: 12,
  assetsMax: 100,
};

export interface CampaignReport extends EndReport {
  /** How often each fault was injected, by name, such as `killed before send`. */
  readonly injected: ReadonlyMap<string, number>;
}

/** A signer, its committed offset, and the process that currently runs its lane. */
interface SignerSlot {
  readonly lane: SignerLane;
  readonly address: string;
  current: MinterProcess;
  committed: number;
}

/** A process that runs a signer's lane until the process is killed or fenced. */
interface MinterProcess {
  readonly slot: SignerSlot;
  isDead: boolean;
}

interface WaitingStep {
  readonly process: MinterProcess;
  readonly resume: () => void;
}

class Campaign {
  readonly random: Random;
  readonly chain = new MemoryChain(CONTRACTS);
  readonly node = new MemoryNode(this.chain, { depth: DEPTH });
  readonly log = new MemoryMintLog();
  readonly traffic: CampaignTraffic;
  readonly injected = new Map<string, number>();
  #waiting: WaitingStep[] = [];
  readonly #slots: readonly SignerSlot[];
  #nowMs = 0;
  #highest = 0;
  #isCalm = false;
  #fault: unknown = null;

  constructor(seed: number) {
    this.random = createRandom(seed);
    this.traffic = new CampaignTraffic(this.random, this.log);
    this.#slots = SIGNERS.map((signer) => {
      const slot = { lane: { chain: CHAIN, signer }, address: toAddress(signer), committed: 0 };
      return Object.assign(slot, { current: { isDead: true } as MinterProcess });
    });
    this.#setRoles();
    this.node.mine();
  }

  #setRoles(): void {
    for (const contract of CONTRACTS.keys())
      for (const { address } of this.#slots) this.chain.setRole(contract, address, true);
  }

  async run(): Promise<CampaignReport> {
    for (let at = 0; at < FAULT_EVENTS; at++) await this.#runEvent();
    this.#repair();
    for (let at = 0; !this.#isDone(); at++) {
      if (at === CALM_EVENTS_MAX) throw new Error(`the run does not end: ${this.traffic.describePending()}`);
      await this.#runEvent();
    }
    return { ...checkEnd(this), injected: this.injected };
  }

  #isDone(): boolean {
    const isRead = ({ lane, committed }: SignerSlot) => committed === this.traffic.requestsOf(lane.signer).length;
    return this.#slots.every(isRead) && this.traffic.isSettled();
  }

  #note(fault: string): void {
    this.injected.set(fault, (this.injected.get(fault) ?? 0) + 1);
  }

  /** Runs one event: usually a waiting process's next step, otherwise the passing of time or a fault. */
  async #runEvent(): Promise<void> {
    for (const slot of this.#slots) if (slot.current.isDead) this.#start(slot);
    const { random } = this;
    if (random.chance(0.1)) this.#passTime();
    else if (!this.#isCalm && random.chance(0.02)) this.#inject();
    else this.#release();
    // Completes all work that does not wait for a step.
    await new Promise((resolve) => setImmediate(resolve));
    if (this.#fault !== null) throw this.#fault;
  }

  #release(): void {
    const [step] = this.#waiting.splice(this.random.below(this.#waiting.length), 1);
    if (step === undefined) this.#passTime();
    else step.resume();
  }

  #passTime(): void {
    this.#nowMs += this.random.below(4_000);
    if (!this.node.isStopped) this.node.mine(() => this.#isCalm || this.random.chance(0.9));
    this.#highest = Math.max(this.#highest, this.chain.head.number);
  }

  #inject(): void {
    const { node, chain, random, traffic } = this;
    const contract = random.pick([...CONTRACTS.keys()]);
    const slot = random.pick(this.#slots);
    const set = (changes: Partial<MemoryNode>) => void Object.assign(node, changes);
    const faults: Record<string, () => void> = {
      requests: () => traffic.request(),
      'requests again': () => traffic.requestAgain(),
      reorg: () => this.#reorganise(),
      'pool lost': () => node.losePool(),
      'node stopped': () => set({ isStopped: true }),
      'node restarted': () => set({ isStopped: false }),
      'role revoked': () => chain.setRole(contract, slot.address, false),
      'role granted': () => chain.setRole(contract, slot.address, true),
      'fees rise': () => set({ baseFee: BigInt(random.pick([10, 50, 400, 3_000, 30_000])) }),
      'fees fall': () => set({ baseFee: 10n }),
      'bytes rejected': () => set({ isNextRefused: true }),
      'funds removed': () => set({ balance: 1_000n }),
      'funds restored': () => set({ balance: 10n ** 21n }),
      'nonce used by another sender': () => this.#useNonce(slot),
      takeover: () => this.#start(slot),
      'committed offsets reset': () => {
        slot.committed = Math.max(0, slot.committed - random.below(30));
        this.#start(slot);
      },
    };
    const frequentFaults =
      'requests,requests,requests again,node restarted,role granted,fees rise,fees rise,funds restored'.split(',');
    const fault = random.pick([...Object.keys(faults), ...frequentFaults]);
    this.#note(fault);
    faults[fault]!();
  }

  #useNonce({ address, lane }: SignerSlot): void {
    const nonce = this.chain.nonceOf(address);
    const isLogged = this.log.transactions.some((each) => each.signer === lane.signer && each.nonce === nonce);
    // A nonce that was never logged would block the signer permanently.
    if (isLogged) this.node.accept({ address, nonce, chainId: RULES.chainId, maxFeePerGas: RULES.feeMax });
  }

  /** Replaces up to thirty blocks. The new blocks may or may not contain the same transactions. */
  #reorganise(): void {
    const { chain, node, random } = this;
    // An earlier reorganisation may have shortened the chain, but final blocks are never removed.
    const count = Math.min(1 + random.below(REORG_MAX), chain.head.number - Math.max(1, this.#highest - DEPTH));
    if (count < 1) return;
    const removed = chain.removeBlocks(count);
    if (random.chance(0.5)) node.restoreToPool(removed.filter(() => random.chance(0.7)));
    const blocks = random.below(count + 2);
    for (let at = 0; at < blocks; at++) node.mine(() => random.chance(0.5));
    this.#highest = Math.max(this.#highest, chain.head.number);
  }

  #repair(): void {
    this.#isCalm = true;
    Object.assign(this.node, { isStopped: false, baseFee: 10n, balance: 10n ** 21n, isNextRefused: false });
    this.#setRoles();
  }

  /** Starts a new process. The previous process may still be running, unaware that it is fenced. */
  #start(slot: SignerSlot): void {
    const process = { slot, isDead: false };
    slot.current = process;
    void this.#runProcess(process).catch((fault) => {
      process.isDead = true;
      if (!(fault instanceof LaneLost)) this.#fault = fault;
    });
  }

  async #runProcess(process: MinterProcess): Promise<void> {
    const { lane, address, committed } = process.slot;
    const minting = await MintLane.takeOver({
      lane,
      rules: RULES,
      activityIdOf,
      signer: createMemorySigner(address),
      isUnlinked: () => false,
      nodes: createNodeChoice([this.#wrapNode(process)]),
      log: this.#wrapLog(process),
      clock: { wallClockMs: () => 1_000_000 + this.#nowMs, monotonicMs: () => this.#nowMs },
    });
    let at = committed;
    for (;;) {
      const batch = this.traffic.requestsOf(lane.signer).slice(at, at + 1 + this.random.below(150));
      // Requests arrive during a turn, as in a real process.
      const accepting = batch.length > 0 ? this.#acceptBatch(process, minting, batch) : at;
      const runningTurn = minting.turn().catch((fault) => {
        if (fault instanceof LaneLost || !/does not respond/.test(String(fault))) throw fault;
      });
      [at] = await Promise.all([accepting, runningTurn]);
      await this.#step(process, 'idle', async () => {});
    }
  }

  async #acceptBatch(process: MinterProcess, minting: MintLane, batch: readonly ReceivedRequest[]): Promise<number> {
    await minting.accept(batch);
    const end = batch.at(-1)!.offset + 1;
    // Brokers accept commits only from the current generation.
    await this.#step(process, 'commit', async () => {
      if (process.slot.current === process) process.slot.committed = end;
    });
    return end;
  }

  /** Waits until the step is chosen. The process may be killed before or after the step. */
  async #step<T>(process: MinterProcess, name: string, action: () => Promise<T>): Promise<T> {
    await new Promise<void>((resume) => void this.#waiting.push({ process, resume }));
    if (this.#isKilled(process, `killed before ${name}`)) return new Promise(() => {});
    const value = await action();
    if (this.#isKilled(process, `killed after ${name}`)) return new Promise(() => {});
    return value;
  }

  #isKilled(process: MinterProcess, cause: string): boolean {
    if (process.isDead) return true;
    const isStep = /log|claim|result|commit|send|tombstones|take-over/.test(cause);
    if (this.#isCalm || !this.random.chance(isStep ? 0.03 : 0.002)) return false;
    process.isDead = true;
    this.#note(cause);
    return true;
  }

  #wrapNode(process: MinterProcess): MemoryNode {
    return new Proxy(this.node, {
      get: (node, name: keyof MemoryNode) => {
        const method = node[name] as unknown;
        if (typeof method !== 'function') return method;
        return (...args: unknown[]) => {
          if (name === 'send') this.#assertLogged(args[0] as Buffer);
          return this.#step(process, name, () => method.apply(node, args));
        };
      },
    });
  }

  /** Checks the rule on which all guarantees depend. */
  #assertLogged(bytes: Buffer): void {
    if (!this.log.transactions.some(({ signedBytes }) => signedBytes.equals(bytes)))
      this.#fault = new Error('bytes were sent that are not on the log');
  }

  #wrapLog(process: MinterProcess): MintLog {
    const others = this.log.createOthers();
    return {
      lanesOf: () => this.log.lanesOf(),
      others: { ...others, sync: (options) => this.#step(process, 'read others', () => others.sync(options)) },
      openWriter: (lane) =>
        this.#step(process, 'take-over', async () => {
          const writer = await this.log.openWriter(lane);
          return {
            ...writer,
            append: (change) => this.#step(process, nameOf(change), () => this.#appendOrFail(writer.append, change)),
          };
        }),
    };
  }

  /** Sometimes drops the response to a commit, which may or may not have succeeded. */
  async #appendOrFail(append: (change: LaneChange) => Promise<void>, change: LaneChange): Promise<void> {
    const isLost = !this.#isCalm && this.random.chance(0.01);
    if (isLost) this.#note('commit unknown');
    if (!isLost || this.random.chance(0.5)) await append(change);
    if (isLost) throw new Error('the outcome of the commit is unknown');
  }
}

function nameOf({ states, transactions, forgotten }: LaneChange): string {
  if (transactions.length > 0) return transactions[0]!.kind === 'noop' ? 'logging a no-op' : 'logging signed bytes';
  if (forgotten.length > 0) return 'tombstones';
  return states.every(({ revision }) => revision === 1) ? 'claim' : 'result';
}

/** Runs one seed with faults, then without until all assets are settled. @throws Error if a guarantee is broken */
export function runCampaign(seed: number): Promise<CampaignReport> {
  return new Campaign(seed).run();
}
