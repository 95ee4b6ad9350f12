import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { CHAIN_ID } from './demo.ts';
import { callRpc } from './rpc.ts';

const MEND = 'Remove node_modules and start again, or start without a chain (--no-chain)';

/** Names of npm's packages say amd64 for what Node calls x64. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

/**
 * The node's program for this machine. Called by itself: the package's command is a process of Node that stands between.
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
    // said below
  }
  throw new Error(`${name} is not installed: npm left the chain's program out, or has none for this machine. ${MEND}`);
}

/** Why the program of the chain cannot be used on this machine. */
export interface AnvilMistake {
  /** A sentence without its full stop. */
  readonly what: string;
  /** What mends it, as a sentence of the same form. */
  readonly mend: string;
}

/** Longer than a machine that is busy with everything else takes to load it. */
const VERSION_MAX_MS = 20_000;

/**
 * Looks whether the program of the chain is there and runs.
 * @param program npm's unless it is named
 * @returns null when it does
 */
export function findAnvilMistake(program?: string): AnvilMistake | null {
  try {
    const { status, error } = spawnSync(program ?? anvilProgram(), ['--version'], {
      ...{ stdio: 'ignore', timeout: VERSION_MAX_MS },
    });
    if (status === 0) return null;
    const how = error === undefined ? `it ended with ${status}` : ((error as NodeJS.ErrnoException).code ?? 'no start');
    return { what: `its program does not run on this machine (${how})`, mend: MEND };
  } catch (fault) {
    return { what: (fault as Error).message.split('. ')[0]!, mend: MEND };
  }
}

/** How a node is started. */
export interface AnvilOptions {
  readonly port: number;
  /** What it begins with; a new chain where there is no such file. */
  readonly statePath: string;
  /** Blocks of an epoch: `safe` is so many behind the latest block, `finalized` twice as many. */
  readonly epochBlocks: number;
  /** `asked`: a block is made when somebody asks for one; `each`: for every transaction, at once. */
  readonly mining: 'asked' | 'each';
}

/**
 * States of blocks before the latest that can still be asked for; all of them would fill the memory. More than any horizon
 * of finality here.
 */
const STATES_KEPT = 128;

const toSeconds = (atMs: number) => Math.floor(atMs / 1000);

interface SavedState {
  readonly blocks?: readonly { readonly header: { readonly number: string; readonly timestamp: string } }[];
}

/**
 * When the first block of a chain was made, in seconds of the epoch; now where there is no chain yet. A node makes a first
 * block of its own whatever it is told to load, and forgets which of the two is of the chain: they must be the same.
 */
function firstBlockAt(statePath: string): number {
  try {
    const { blocks } = JSON.parse(readFileSync(statePath, 'utf8')) as SavedState;
    const first = blocks?.find(({ header }) => Number(header.number) === 0);
    if (first !== undefined) return Number(first.header.timestamp);
  } catch {
    // None yet, or none that can be read: the node says so.
  }
  return toSeconds(Date.now());
}

/** The words that anvil is started with; the state file is looked for now. */
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
  // The node signs for everybody who asks, so no page in a browser may reach it. It would also print the keys of its
  // accounts.
  return [...words, '--no-cors', '--quiet', ...(mining === 'asked' ? ['--no-mining'] : [])];
}

/** Sets the clock of a node right: one that was told when its chain began goes on from then. @throws Error */
export async function setClock(rpc: string): Promise<void> {
  await callRpc(rpc, 'evm_setTime', [toSeconds(Date.now())]);
}
