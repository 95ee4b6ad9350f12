// The chain node's program, and its arguments.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { CHAIN_ID } from './demo.ts';
import { callRpc } from './rpc.ts';

const FIX = 'Remove node_modules and start again, or start without a chain (--no-chain)';

/** npm packages use amd64 where Node uses x64. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

/**
 * Run directly, because the package's command adds a Node process. @throws Error with a fix when it is not installed
 */
export function anvilProgram(): string {
  const name = `@foundry-rs/anvil-${process.platform}-${ARCHITECTURES[process.arch] ?? process.arch}`;
  try {
    const require = createRequire(import.meta.url);
    const wrapper = createRequire(require.resolve('@foundry-rs/anvil/package.json'));
    const program = join(wrapper.resolve(`${name}/package.json`), '..', 'bin', 'anvil');
    if (existsSync(program)) return program;
  } catch {}
  throw new Error(`${name} is not installed: npm left the chain's program out, or has none for this machine. ${FIX}`);
}

const VERSION_MAX_MS = 20_000;

/** @param program default: npm's. @returns null when it runs; otherwise two messages without a full stop */
export function findAnvilProblem(program?: string): { readonly what: string; readonly fix: string } | null {
  try {
    const { status, error } = spawnSync(program ?? anvilProgram(), ['--version'], {
      stdio: 'ignore',
      timeout: VERSION_MAX_MS,
    });
    if (status === 0) return null;
    const reason =
      error === undefined ? `it ended with ${status}` : ((error as NodeJS.ErrnoException).code ?? 'no start');
    return { what: `its program does not run on this machine (${reason})`, fix: FIX };
  } catch (fault) {
    return { what: (fault as Error).message.split('. ')[0]!, fix: FIX };
  }
}

export interface AnvilOptions {
  readonly port: number;
  /** State to start from; without the file, a new chain starts. */
  readonly statePath: string;
  /** `safe` is this many blocks before the latest block, `finalized` twice as many. */
  readonly epochBlocks: number;
  /** If true, creates a block for every transaction; if false, only on request. */
  readonly autoMine: boolean;
}

/** Number of earlier blocks whose state can be queried: more than any finality depth in use. */
const STATES_KEPT = 128;

const toSeconds = (atMs: number) => Math.floor(atMs / 1000);

interface SavedState {
  readonly blocks?: readonly { readonly header: { readonly number: string; readonly timestamp: string } }[];
}

/** In seconds. A node always creates its own first block, which must have the time of the first block in the state. */
function firstBlockAt(statePath: string): number {
  try {
    const { blocks } = JSON.parse(readFileSync(statePath, 'utf8')) as SavedState;
    const first = blocks?.find(({ header }) => Number(header.number) === 0);
    if (first !== undefined) return Number(first.header.timestamp);
  } catch {}
  return toSeconds(Date.now());
}

/** Reads the state file. */
export function anvilArguments({ port, statePath, epochBlocks, autoMine }: AnvilOptions): string[] {
  const flags: Record<string, string> = {
    host: '127.0.0.1',
    port: String(port),
    'chain-id': String(CHAIN_ID),
    timestamp: String(firstBlockAt(statePath)),
    'slots-in-an-epoch': String(epochBlocks),
    'prune-history': String(STATES_KEPT),
    ...(existsSync(statePath) ? { 'load-state': statePath } : {}),
  };
  const valued = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
  // The node signs for every caller, so browser pages must not reach it. Without --quiet it prints the keys of its accounts.
  return [...valued, '--no-cors', '--quiet', ...(autoMine ? [] : ['--no-mining'])];
}

/** Sets a node's clock to now: a node with a given start time otherwise continues from that time. */
export async function setClock(rpc: string): Promise<void> {
  await callRpc(rpc, 'evm_setTime', [toSeconds(Date.now())]);
}
