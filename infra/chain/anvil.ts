import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { CHAIN_ID } from './demo.ts';
import { callRpc } from './rpc.ts';

const FIX = 'Remove node_modules and start again, or start without a chain (--no-chain)';

/** npm's packages say amd64 where Node says x64. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

/**
 * The node's program for this machine. It is run directly, because the package's command would add a Node process.
 * @throws Error that says how to mend it when npm has left it out
 */
export function anvilProgram(): string {
  const name = `@foundry-rs/anvil-${process.platform}-${ARCHITECTURES[process.arch] ?? process.arch}`;
  try {
    const require = createRequire(import.meta.url);
    const wrapper = createRequire(require.resolve('@foundry-rs/anvil/package.json'));
    const program = join(wrapper.resolve(`${name}/package.json`), '..', 'bin', 'anvil');
    if (existsSync(program)) return program;
  } catch {
    // reported below
  }
  throw new Error(`${name} is not installed: npm left the chain's program out, or has none for this machine. ${FIX}`);
}

/** Why the chain's program cannot be used on this machine. */
export interface AnvilProblem {
  /** A sentence without its full stop. */
  readonly what: string;
  /** How to mend it, also a sentence without its full stop. */
  readonly fix: string;
}

/** Longer than a busy machine takes to load the program. */
const VERSION_MAX_MS = 20_000;

/**
 * Checks whether the chain's program exists and runs.
 * @param program default: npm's
 * @returns null when it does
 */
export function findAnvilProblem(program?: string): AnvilProblem | null {
  try {
    const { status, error } = spawnSync(program ?? anvilProgram(), ['--version'], {
      stdio: 'ignore',
      timeout: VERSION_MAX_MS,
    });
    if (status === 0) return null;
    const how = error === undefined ? `it ended with ${status}` : ((error as NodeJS.ErrnoException).code ?? 'no start');
    return { what: `its program does not run on this machine (${how})`, fix: FIX };
  } catch (fault) {
    return { what: (fault as Error).message.split('. ')[0]!, fix: FIX };
  }
}

/** How a node is started. */
export interface AnvilOptions {
  readonly port: number;
  /** File with the state to start from; without the file a new chain begins. */
  readonly statePath: string;
  /** Blocks of an epoch: `safe` is this many before the latest block, `finalized` twice as many. */
  readonly epochBlocks: number;
  /** When to make a block. `asked`: on request; `each`: at once for every transaction. */
  readonly mining: 'asked' | 'each';
}

/**
 * Number of earlier blocks whose state can still be queried. Without a limit they would fill the memory. More than any
 * depth of finality here.
 */
const STATES_KEPT = 128;

const toSeconds = (atMs: number) => Math.floor(atMs / 1000);

interface SavedState {
  readonly blocks?: readonly { readonly header: { readonly number: string; readonly timestamp: string } }[];
}

/**
 * Time of a chain's first block in seconds since 1970; now for a new chain. A node always creates its own first block,
 * even when it loads a state that has one. It cannot tell which of the two is right, so they must have the same time.
 */
function firstBlockAt(statePath: string): number {
  try {
    const { blocks } = JSON.parse(readFileSync(statePath, 'utf8')) as SavedState;
    const first = blocks?.find(({ header }) => Number(header.number) === 0);
    if (first !== undefined) return Number(first.header.timestamp);
  } catch {
    // There is no state, or it cannot be read, which the node reports.
  }
  return toSeconds(Date.now());
}

/** The arguments of anvil. Reads the state file. */
export function anvilArguments({ port, statePath, epochBlocks, mining }: AnvilOptions): string[] {
  const flags: Record<string, string> = {
    host: '127.0.0.1',
    port: String(port),
    'chain-id': String(CHAIN_ID),
    timestamp: String(firstBlockAt(statePath)),
    'slots-in-an-epoch': String(epochBlocks),
    'prune-history': String(STATES_KEPT),
    ...(existsSync(statePath) ? { 'load-state': statePath } : {}),
  };
  const words = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
  // The node signs for every caller, so no page in a browser may reach it. Without --quiet it prints the keys of its
  // accounts.
  return [...words, '--no-cors', '--quiet', ...(mining === 'asked' ? ['--no-mining'] : [])];
}

/**
 * Sets a node's clock to now, because a node with a given start time continues from that time.
 * @throws Error when the node refuses
 */
export async function setClock(rpc: string): Promise<void> {
  await callRpc(rpc, 'evm_setTime', [toSeconds(Date.now())]);
}
