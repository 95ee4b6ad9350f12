// The program and arguments of the chain node.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { CHAIN_ID } from './demo.ts';
import { callRpc } from './rpc.ts';

const FIX = 'Remove node_modules and start again, or start without a chain (--no-chain)';

/** npm packages use amd64 where Node uses x64. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

/** Returns the binary itself, because the package's command adds a Node process. @throws Error if it is missing */
export function anvilProgram(): string {
  const name = `@foundry-rs/anvil-${process.platform}-${ARCHITECTURES[process.arch] ?? process.arch}`;
  try {
    const require = createRequire(import.meta.url);
    const wrapper = createRequire(require.resolve('@foundry-rs/anvil/package.json'));
    const program = join(wrapper.resolve(`${name}/package.json`), '..', 'bin', 'anvil');
    if (existsSync(program)) return program;
  } catch {}
  throw new Error(
    `${name} is not installed: either npm skipped the optional package, or anvil has no build for this machine. ${FIX}`,
  );
}

const VERSION_MAX_MS = 20_000;

/** Checks whether anvil runs. @param program default: from npm @returns null if it runs, else a problem and a fix */
export function findAnvilProblem(program?: string): { readonly what: string; readonly fix: string } | null {
  try {
    const { status, error } = spawnSync(program ?? anvilProgram(), ['--version'], {
      stdio: 'ignore',
      timeout: VERSION_MAX_MS,
    });
    if (status === 0) return null;
    const reason =
      error === undefined ? `exit code ${status}` : ((error as NodeJS.ErrnoException).code ?? 'cannot start');
    return { what: `anvil does not run on this machine (${reason})`, fix: FIX };
  } catch (error) {
    return { what: (error as Error).message.split('. ')[0]!, fix: FIX };
  }
}

export interface AnvilOptions {
  readonly port: number;
  /** State file to load. If it does not exist, a new chain is started. */
  readonly statePath: string;
  /** `safe` is this many blocks before the latest block, `finalized` twice as many. */
  readonly epochBlocks: number;
  /** True to create a block per transaction, false to create blocks only on request. */
  readonly autoMine: boolean;
}

/** Number of earlier blocks whose state can be queried: more than any finality depth in use. */
const STATES_MAX = 128;

const toSeconds = (atMs: number) => Math.floor(atMs / 1000);

interface SavedState {
  readonly blocks?: readonly { readonly header: { readonly number: string; readonly timestamp: string } }[];
}

/** Returns the time of the first block in seconds. The node recreates that block, which must match the state. */
function readGenesisTime(statePath: string): number {
  try {
    const { blocks } = JSON.parse(readFileSync(statePath, 'utf8')) as SavedState;
    const first = blocks?.find(({ header }) => Number(header.number) === 0);
    if (first !== undefined) return Number(first.header.timestamp);
  } catch {}
  return toSeconds(Date.now());
}

/** Returns the command line arguments of anvil. Reads the state file. */
export function anvilArguments({ port, statePath, epochBlocks, autoMine }: AnvilOptions): string[] {
  const flags: Record<string, string> = {
    host: '127.0.0.1',
    port: String(port),
    'chain-id': String(CHAIN_ID),
    timestamp: String(readGenesisTime(statePath)),
    'slots-in-an-epoch': String(epochBlocks),
    'prune-history': String(STATES_MAX),
    ...(existsSync(statePath) ? { 'load-state': statePath } : {}),
  };
  const options = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
  // The node signs for every caller, so browser pages must not reach it. Without --quiet, the node prints private keys.
  return [...options, '--no-cors', '--quiet', ...(autoMine ? [] : ['--no-mining'])];
}

/** Sets a node's clock to the current time. A node with a configured start time otherwise continues from that time. */
export async function setClock(rpc: string): Promise<void> {
  await callRpc(rpc, 'evm_setTime', [toSeconds(Date.now())]);
}
