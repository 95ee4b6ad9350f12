import { setTimeout as delay } from 'node:timers/promises';
import type { MintRequestRecord } from '@playline/contracts';
import type { ServiceProcess } from '@playline/testkit';
import { createRandom, type Random } from '@playline/testkit/random';
import { ownerOf } from './mint-requests.ts';
import { type Minting, toTokens } from './open-minting.ts';

export interface StormReport {
  readonly requests: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly injected: Readonly<Record<string, number>>;
}

const ROUNDS = 6;
const REQUESTS_MAX = 6;
const PAUSE_MAX_MS = 700;
const ZERO_ADDRESS = `0x${'0'.repeat(40)}`;
/** Maximum number of replaced blocks. None of these blocks is final. */
const REORG_MAX = 12;

type Request = Partial<MintRequestRecord> & { contract: string; referenceId: string };

/**
 * Kills, suspends and duplicates minters, kills the node and replaces blocks while requests arrive.
 * @param minting can be new or used by earlier storms
 * @throws Error if the chain and the states differ at the end
 */
export async function runStorm(minting: Minting, seed: number): Promise<StormReport> {
  const random = createRandom(seed);
  const before = (await minting.states()).length;
  const injected: Record<string, number> = {};
  const minters = new Minters(minting, seed);
  let requests = 0;
  try {
    await minters.start();
    for (let round = 0; round < ROUNDS; round++) {
      const batch = toRequests(minting, random, `seed ${seed} round ${round}`);
      await minting.publish(batch);
      requests += batch.length;
      await delay(random.below(PAUSE_MAX_MS));
      const fault = await injectFault(minting, minters, random);
      injected[fault] = (injected[fault] ?? 0) + 1;
    }
    await minters.endFaults();
    const states = await minting.settled(before + requests);
    const [reported, minted] = [toTokens(states), await minting.tokens()];
    if (reported.join('\n') !== minted.join('\n'))
      throw new Error(`the states contain ${reported.length} tokens, but the chain contains ${minted.length}`);
    const stormStates = states.filter(({ referenceId }) => referenceId.startsWith(`seed ${seed} `));
    const succeeded = stormStates.filter(({ status }) => status === 'succeeded').length;
    return { requests, succeeded, failed: stormStates.length - succeeded, injected };
  } finally {
    await minters.close();
  }
}

/** A storm's minters: one in the consumer group, and sometimes one in another group that takes over every lane. */
class Minters {
  readonly #minting: Minting;
  readonly #name: string;
  #rivals = 0;
  #minter: ServiceProcess | null = null;
  #rival: ServiceProcess | null = null;

  constructor(minting: Minting, seed: number) {
    this.#minting = minting;
    this.#name = `rival-${seed}-${process.pid}`;
  }

  async start(): Promise<void> {
    this.#minter ??= await this.#minting.start();
  }

  async kill(): Promise<void> {
    await this.#minter?.stop('SIGKILL');
    this.#minter = null;
  }

  async duplicate(): Promise<void> {
    this.#rival ??= await this.#minting.start({ CONSUMER_GROUP: `${this.#name}-${++this.#rivals}` });
  }

  /** Suspends the process at an arbitrary step. The process may be fenced when it resumes. */
  async freeze(ms: number): Promise<void> {
    this.#minter?.child.kill('SIGSTOP');
    await delay(ms);
    this.#minter?.child.kill('SIGCONT');
  }

  async endFaults(): Promise<void> {
    await this.#rival?.stop('SIGKILL');
    this.#rival = null;
    await this.start();
  }

  async close(): Promise<void> {
    await Promise.all([this.#minter?.stop('SIGKILL'), this.#rival?.stop('SIGKILL')]);
  }
}

async function injectFault({ chain }: Minting, minters: Minters, random: Random): Promise<string> {
  const faults: Record<string, () => Promise<unknown>> = {
    'minter killed': async () => {
      await minters.kill();
      await minters.start();
    },
    'minter duplicated': () => minters.duplicate(),
    'minter frozen': () => minters.freeze(random.below(5_000)),
    'blocks replaced': async () => {
      const depth = 1 + random.below(REORG_MAX);
      // A restarted node has no blocks that can be replaced.
      if ((await chain.replaceableBlocks()) === 0) await chain.mine();
      await chain.reorg(Math.min(depth, await chain.replaceableBlocks()));
    },
    'node killed': async () => {
      await chain.kill();
      await delay(random.below(1_000));
      await chain.restart();
    },
  };
  const fault = random.pick(Object.keys(faults));
  await faults[fault]!();
  return fault;
}

/** Creates random requests for both collections. Requests whose owner is the zero address must fail. */
function toRequests({ contracts }: Minting, random: Random, name: string): Request[] {
  const { erc721, erc1155 } = contracts;
  const count = 1 + random.below(REQUESTS_MAX);
  return Array.from({ length: count }, (_, at) => {
    const referenceId = `${name} asset ${at}`;
    const owner = random.chance(0.1) ? ZERO_ADDRESS : ownerOf(random.below(4));
    const tokenId = String(random.below(2 ** 30));
    if (random.chance(0.3)) return { contract: erc1155, referenceId, owner, tokenId, amount: `${1 + random.below(5)}` };
    return { contract: erc721, referenceId, owner, tokenId: random.chance(0.5) ? tokenId : null };
  });
}
