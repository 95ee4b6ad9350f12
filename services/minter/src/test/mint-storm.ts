import { setTimeout as delay } from 'node:timers/promises';
import type { MintRequestRecord } from '@playline/contracts';
import type { ServiceProcess } from '@playline/testkit';
import { createRandom, type Random } from '@playline/testkit/random';
import { ownerOf } from './mint-requests.ts';
import { type Minting, toTokens } from './open-minting.ts';

/** Result of a storm. */
export interface StormReport {
  readonly requests: number;
  readonly succeeded: number;
  readonly failed: number;
  /** How often each fault was injected. */
  readonly struck: Readonly<Record<string, number>>;
}

const ROUNDS = 6;
const REQUESTS_MAX = 6;
const PAUSE_MAX_MS = 700;
const NO_SIGNER = `0x${'0'.repeat(40)}`;
/** Maximum number of replaced blocks: all of them are not final. */
const REORG_MAX = 12;

type Request = Partial<MintRequestRecord> & { contract: string; referenceId: string };

/**
 * Kills, stops and duplicates minters, kills the node and replaces its blocks, while requests arrive.
 * @param minting new, or used by earlier storms
 * @throws Error when the chain finally differs from the states
 */
export async function runStorm(minting: Minting, seed: number): Promise<StormReport> {
  const random = createRandom(seed);
  const before = (await minting.states()).length;
  const struck: Record<string, number> = {};
  const minters = new Minters(minting, seed);
  let requests = 0;
  try {
    await minters.start();
    for (let round = 0; round < ROUNDS; round++) {
      const some = toRequests(minting, random, `seed ${seed} round ${round}`);
      await minting.publish(some);
      requests += some.length;
      await delay(random.below(PAUSE_MAX_MS));
      const what = await strike(minting, minters, random);
      struck[what] = (struck[what] ?? 0) + 1;
    }
    await minters.calm();
    const states = await minting.settled(before + requests);
    const [reported, minted] = [toTokens(states), await minting.tokens()];
    if (reported.join('\n') !== minted.join('\n'))
      throw new Error(`states report ${reported.length} tokens, the chain has ${minted.length}`);
    const own = states.filter(({ referenceId }) => referenceId.startsWith(`seed ${seed} `));
    const succeeded = own.filter(({ status }) => status === 'succeeded').length;
    return { requests, succeeded, failed: own.length - succeeded, struck };
  } finally {
    await minters.close();
  }
}

/** Minters of a storm: one in the group, and sometimes one in another group that takes over every lane. */
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

  /** Suspends the process at any step: when it continues, it may have been fenced. */
  async freeze(ms: number): Promise<void> {
    this.#minter?.child.kill('SIGSTOP');
    await delay(ms);
    this.#minter?.child.kill('SIGCONT');
  }

  async calm(): Promise<void> {
    await this.#rival?.stop('SIGKILL');
    this.#rival = null;
    await this.start();
  }

  async close(): Promise<void> {
    await Promise.all([this.#minter?.stop('SIGKILL'), this.#rival?.stop('SIGKILL')]);
  }
}

async function strike({ chain }: Minting, minters: Minters, random: Random): Promise<string> {
  const strikes: Record<string, () => Promise<unknown>> = {
    'minter killed': async () => {
      await minters.kill();
      await minters.start();
    },
    'minter duplicated': () => minters.duplicate(),
    'minter frozen': () => minters.freeze(random.below(5_000)),
    'blocks replaced': async () => {
      const depth = 1 + random.below(REORG_MAX);
      // A restarted node has no blocks to replace.
      if ((await chain.replaceableBlocks()) === 0) await chain.mine();
      await chain.reorg(Math.min(depth, await chain.replaceableBlocks()));
    },
    'node killed': async () => {
      await chain.kill();
      await delay(random.below(1_000));
      await chain.restart();
    },
  };
  const what = random.pick(Object.keys(strikes));
  await strikes[what]!();
  return what;
}

/** Random requests for both collections; requests for NO_SIGNER must fail. */
function toRequests({ contracts }: Minting, random: Random, name: string): Request[] {
  const { erc721, erc1155 } = contracts;
  const count = 1 + random.below(REQUESTS_MAX);
  return Array.from({ length: count }, (_, at) => {
    const referenceId = `${name} asset ${at}`;
    const owner = random.chance(0.1) ? NO_SIGNER : ownerOf(random.below(4));
    const tokenId = String(random.below(2 ** 30));
    if (random.chance(0.3)) return { contract: erc1155, referenceId, owner, tokenId, amount: `${1 + random.below(5)}` };
    return { contract: erc721, referenceId, owner, tokenId: random.chance(0.5) ? tokenId : null };
  });
}
