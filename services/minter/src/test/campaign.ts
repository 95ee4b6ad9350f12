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

/** Longer than the deepest reorganisation of a run. */
const DEPTH = 32;
const REORG_MAX = 30;
/** Number of events with faults, and maximum number of events after them. */
const STORM = 6_000;
const CALM_MAX = 60_000;
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

/** Result of a seed. */
export interface CampaignReport extends EndReport {
  /** How often each fault happened, by names such as `killed before send`. */
  readonly struck: ReadonlyMap<string, number>;
}

/** The work for one signer: its requests, and the process that does it now. */
interface Seat {
  readonly lane: SignerLane;
  readonly address: string;
  current: Incarnation;
  committed: number;
}

/** A process that works for a signer until it is killed or fenced. */
interface Incarnation {
  readonly seat: Seat;
  isDead: boolean;
}

interface WaitingStep {
  readonly of: Incarnation;
  readonly go: () => void;
}

class Campaign {
  readonly random: Random;
  readonly chain = new MemoryChain(CONTRACTS);
  readonly node = new MemoryNode(this.chain, { depth: DEPTH });
  readonly log = new MemoryMintLog();
  readonly traffic: CampaignTraffic;
  readonly struck = new Map<string, number>();
  #waiting: WaitingStep[] = [];
  readonly #seats: readonly Seat[];
  #nowMs = 0;
  #highest = 0;
  #isCalm = false;
  #fault: unknown = null;

  constructor(seed: number) {
    this.random = createRandom(seed);
    this.traffic = new CampaignTraffic(this.random, this.log);
    this.#seats = SIGNERS.map((signer) => {
      const seat = { lane: { chain: CHAIN, signer }, address: toAddress(signer), committed: 0 };
      return Object.assign(seat, { current: { isDead: true } as Incarnation });
    });
    this.#setRoles();
    this.node.mine();
  }

  #setRoles(): void {
    for (const contract of CONTRACTS.keys())
      for (const { address } of this.#seats) this.chain.setRole(contract, address, true);
  }

  async run(): Promise<CampaignReport> {
    for (let at = 0; at < STORM; at++) await this.#happen();
    this.#repair();
    for (let at = 0; !this.#isDone(); at++) {
      if (at === CALM_MAX) throw new Error(`it does not end: ${this.traffic.describeOpen()}`);
      await this.#happen();
    }
    return { ...checkEnd(this), struck: this.struck };
  }

  #isDone(): boolean {
    const isRead = ({ lane, committed }: Seat) => committed === this.traffic.requestsOf(lane.signer).length;
    return this.#seats.every(isRead) && this.traffic.isSettled();
  }

  #note(what: string): void {
    this.struck.set(what, (this.struck.get(what) ?? 0) + 1);
  }

  /** One event: mostly the next step of a waiting process, otherwise something around it. */
  async #happen(): Promise<void> {
    for (const seat of this.#seats) if (seat.current.isDead) this.#start(seat);
    const { random } = this;
    if (random.chance(0.1)) this.#passTime();
    else if (!this.#isCalm && random.chance(0.02)) this.#strike();
    else this.#release();
    // Lets everything happen that needs no further step, before the next event.
    await new Promise((resolve) => setImmediate(resolve));
    if (this.#fault !== null) throw this.#fault;
  }

  #release(): void {
    const [step] = this.#waiting.splice(this.random.below(this.#waiting.length), 1);
    if (step === undefined) this.#passTime();
    else step.go();
  }

  #passTime(): void {
    this.#nowMs += this.random.below(4_000);
    if (!this.node.isStopped) this.node.mine(() => this.#isCalm || this.random.chance(0.9));
    this.#highest = Math.max(this.#highest, this.chain.head.number);
  }

  #strike(): void {
    const { node, chain, random, traffic } = this;
    const contract = random.pick([...CONTRACTS.keys()]);
    const seat = random.pick(this.#seats);
    const set = (given: Partial<MemoryNode>) => void Object.assign(node, given);
    const strikes: Record<string, () => void> = {
      requests: () => traffic.request(),
      'requests again': () => traffic.requestAgain(),
      reorg: () => this.#reorganise(),
      'pool lost': () => node.losePool(),
      'node away': () => set({ isStopped: true }),
      'node back': () => set({ isStopped: false }),
      'role taken': () => chain.setRole(contract, seat.address, false),
      'role given': () => chain.setRole(contract, seat.address, true),
      'fees rise': () => set({ baseFee: BigInt(random.pick([10, 50, 400, 3_000, 30_000])) }),
      'fees fall': () => set({ baseFee: 10n }),
      'bytes refused': () => set({ refusesNext: true }),
      'funds gone': () => set({ balance: 1_000n }),
      'funds back': () => set({ balance: 10n ** 21n }),
      'nonce spent by a stranger': () => this.#spendNonce(seat),
      takeover: () => this.#start(seat),
      'offsets go back': () => {
        seat.committed = Math.max(0, seat.committed - random.below(30));
        this.#start(seat);
      },
    };
    const often = 'requests,requests,requests again,node back,role given,fees rise,fees rise,funds back'.split(',');
    const what = random.pick([...Object.keys(strikes), ...often]);
    this.#note(what);
    strikes[what]!();
  }

  /** Another holder of the key sends a transaction that does nothing, with an open nonce. */
  #spendNonce({ address, lane }: Seat): void {
    const nonce = this.chain.nonceOf(address);
    const isLogged = this.log.transactions.some((each) => each.signer === lane.signer && each.nonce === nonce);
    // A nonce that was never logged would stop the signer for good.
    if (isLogged) this.node.accept({ address, nonce, chainId: RULES.chainId, maxFeePerGas: RULES.feeMax });
  }

  /** Replaces up to thirty blocks; the new ones may have the same transactions or not. */
  #reorganise(): void {
    const { chain, node, random } = this;
    // A killed node may have shortened the chain already, but a final block stays.
    const count = Math.min(1 + random.below(REORG_MAX), chain.head.number - Math.max(1, this.#highest - DEPTH));
    if (count < 1) return;
    const left = chain.leave(count);
    if (random.chance(0.5)) node.putBack(left.filter(() => random.chance(0.7)));
    const blocks = random.below(count + 2);
    for (let at = 0; at < blocks; at++) node.mine(() => random.chance(0.5));
    this.#highest = Math.max(this.#highest, chain.head.number);
  }

  #repair(): void {
    this.#isCalm = true;
    Object.assign(this.node, { isStopped: false, baseFee: 10n, balance: 10n ** 21n, refusesNext: false });
    this.#setRoles();
  }

  /** Starts another process. The one before may still run, and not know that it is fenced. */
  #start(seat: Seat): void {
    const incarnation = { seat, isDead: false };
    seat.current = incarnation;
    void this.#live(incarnation).catch((fault) => {
      incarnation.isDead = true;
      if (!(fault instanceof LaneLost)) this.#fault = fault;
    });
  }

  async #live(of: Incarnation): Promise<void> {
    const { lane, address, committed } = of.seat;
    const minting = await MintLane.takeOver({
      lane,
      rules: RULES,
      activityIdOf,
      signer: createMemorySigner(address),
      isUnlinked: () => false,
      nodes: createNodeChoice([this.#wrapNode(of)]),
      log: this.#wrapLog(of),
      clock: { wallClockMs: () => 1_000_000 + this.#nowMs, monotonicMs: () => this.#nowMs },
    });
    let at = committed;
    for (;;) {
      const batch = this.traffic.requestsOf(lane.signer).slice(at, at + 1 + this.random.below(150));
      // As in a real process, requests arrive during a turn.
      const taking = batch.length > 0 ? this.#takeBatch(of, minting, batch) : at;
      const turning = minting.turn().catch((fault) => {
        if (fault instanceof LaneLost || !/does not answer/.test(String(fault))) throw fault;
      });
      [at] = await Promise.all([taking, turning]);
      await this.#step(of, 'rest', async () => {});
    }
  }

  async #takeBatch(of: Incarnation, minting: MintLane, batch: readonly ReceivedRequest[]): Promise<number> {
    await minting.accept(batch);
    const end = batch.at(-1)!.offset + 1;
    // Brokers accept commits of the current generation only.
    await this.#step(of, 'commit', async () => {
      if (of.seat.current === of) of.seat.committed = end;
    });
    return end;
  }

  /** Waits until the step is chosen; may die before or after it. */
  async #step<T>(of: Incarnation, name: string, act: () => Promise<T>): Promise<T> {
    await new Promise<void>((go) => void this.#waiting.push({ of, go }));
    if (this.#dies(of, `killed before ${name}`)) return new Promise(() => {});
    const value = await act();
    if (this.#dies(of, `killed after ${name}`)) return new Promise(() => {});
    return value;
  }

  #dies(of: Incarnation, how: string): boolean {
    if (of.isDead) return true;
    const isStep = /log|claim|result|commit|send|tombstones|take-over/.test(how);
    if (this.#isCalm || !this.random.chance(isStep ? 0.03 : 0.002)) return false;
    of.isDead = true;
    this.#note(how);
    return true;
  }

  #wrapNode(of: Incarnation): MemoryNode {
    return new Proxy(this.node, {
      get: (node, name: keyof MemoryNode) => {
        const method = node[name] as unknown;
        if (typeof method !== 'function') return method;
        return (...args: unknown[]) => {
          if (name === 'send') this.#assertLogged(args[0] as Buffer);
          return this.#step(of, name, () => method.apply(node, args));
        };
      },
    });
  }

  /** The rule that everything depends on. */
  #assertLogged(bytes: Buffer): void {
    if (!this.log.transactions.some(({ signedBytes }) => signedBytes.equals(bytes)))
      this.#fault = new Error('bytes were sent that are not in the log');
  }

  #wrapLog(of: Incarnation): MintLog {
    const others = this.log.createOthers();
    return {
      lanesOf: () => this.log.lanesOf(),
      others: { ...others, sync: (options) => this.#step(of, 'read others', () => others.sync(options)) },
      openWriter: (lane) =>
        this.#step(of, 'take-over', async () => {
          const writer = await this.log.openWriter(lane);
          return {
            ...writer,
            append: (change) => this.#step(of, nameOf(change), () => this.#appendOrDoubt(writer.append, change)),
          };
        }),
    };
  }

  /** Sometimes a commit gets no answer; it may have succeeded or not. */
  async #appendOrDoubt(append: (change: LaneChange) => Promise<void>, change: LaneChange): Promise<void> {
    const isLost = !this.#isCalm && this.random.chance(0.01);
    if (isLost) this.#note('commit unknown');
    if (!isLost || this.random.chance(0.5)) await append(change);
    if (isLost) throw new Error('the outcome of the commit is unknown');
  }
}

function nameOf({ states, transactions, forgotten }: LaneChange): string {
  if (transactions.length > 0) return transactions[0]!.kind === 'noop' ? 'log of a no-op' : 'log of signed bytes';
  if (forgotten.length > 0) return 'tombstones';
  return states.every(({ revision }) => revision === 1) ? 'claim' : 'result';
}

/** Runs one seed: faults first, then none until everything has ended. @throws Error when a promise is broken */
export function runCampaign(seed: number): Promise<CampaignReport> {
  return new Campaign(seed).run();
}
