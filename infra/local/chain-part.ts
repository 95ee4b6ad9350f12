import { type BlockMaker, openBlockMaker } from '../chain/block-maker.ts';
import { deployDemo } from '../chain/deploy-demo.ts';
import { saveState } from '../chain/state-file.ts';
import { chainAddress, chainSpec, chainStatePath, FINAL_DEPTH } from './chain.ts';
import { type DemoLink, linkDemo } from './chain-demo.ts';
import type { ProcessSpec } from './keeper.ts';
import type { Places } from './places.ts';
import type { DemoChain } from './stack-file.ts';
import type { StackOptions } from './stack-options.ts';

/** The chain of a stack, and its block maker. */
export interface ChainPart {
  /** Resolves when the demo contracts are deployed. */
  readonly contracts: Promise<unknown>;
  /** Links the demo project with the chain. @throws Error with the output of the failed command */
  link(link: Pick<DemoLink, 'env' | 'redisUrl'>): Promise<DemoChain>;
  /** Stops making blocks and saves the chain; the node itself is stopped with the stores. */
  close(): Promise<void>;
}

export interface ChainPartOptions extends Pick<StackOptions, 'chainProgram' | 'say'> {
  readonly port: number;
  /** Starts a process of the stack; resolves when it is ready. */
  readonly start: (spec: ProcessSpec) => Promise<void>;
}

/** Milliseconds between blocks. Usual for chains, and slow enough for people to follow. */
const BLOCK_MS = 1_000;
/** A fault that lasts is reported once in this time. */
const SILENCE_MS = 60_000;

/** Starts the chain of a stack. */
export function openChainPart(
  places: Places,
  { port, chainProgram: program, start, say = () => {} }: ChainPartOptions,
): ChainPart {
  const rpc = chainAddress(port);
  const path = chainStatePath(places);
  let saidAt = Number.NEGATIVE_INFINITY;
  const onFault = (fault: unknown) => {
    // The keeper already reports that the node restarts.
    if (performance.now() - saidAt < SILENCE_MS) return;
    saidAt = performance.now();
    say(`chain: ${fault instanceof Error ? fault.message : fault}`);
  };
  const started = start(chainSpec(places, { port, ...(program !== undefined && { program }) }));
  const save = () => saveState({ rpc, path });
  let [maker, isClosed]: [BlockMaker | null, boolean] = [null, false];
  const contracts = started.then(() => {
    if (!isClosed) maker = openBlockMaker({ rpc, depth: FINAL_DEPTH, blockMs: BLOCK_MS, save, onFault });
    return deployDemo(rpc);
  });
  // If another part fails first, nothing awaits this promise. Its rejection must not be unhandled.
  contracts.catch(() => {});
  return {
    contracts,
    link: async (link) => linkDemo(places, { ...link, rpc, contracts: await contracts, say }),
    close: async () => {
      isClosed = true;
      await maker?.close();
    },
  };
}
