import type { ChainNode, IndexedChain } from '@playline/chain';
import type { IndexProgressRecord } from '@playline/contracts';
import { awaitStore } from '../await-store.ts';
import { type Compared, compareRange, toShownContent } from '../chain/compare.ts';
import { type ProgressSources, readProgress } from '../chain/read-progress.ts';
import { askNodes, readRanges } from '../chain/read-ranges.ts';
import {
  type Command,
  choiceOf,
  EXIT,
  type ExitCode,
  numberOf,
  parseOptions,
  type Terminal,
  textOf,
  UsageError,
} from '../command.ts';
import { type ImportSources, openImportWay } from '../import/import-way.ts';
import type { Line } from '../import/lines.ts';
import { ACTIVITIES } from '../import/subjects.ts';
import { createProgress } from '../progress.ts';

export interface ChainContext extends ImportSources, ProgressSources {
  /** What CHAINS_INDEXED or the stack says. */
  readonly chains: () => readonly IndexedChain[];
  readonly createNode: (node: { name: string; url: string }) => ChainNode;
  /** Aborted when the person asks for the end. */
  readonly stop: AbortSignal;
}

const HELP = `usage: operator chain status [--chain NAME] [--json]
       operator chain verify   --chain NAME [--from BLOCK] [--to BLOCK] [--json]
       operator chain backfill --chain NAME --from BLOCK --to BLOCK [--writer-group NAME] [--json]
                                          (npm run chain -- status)

status     how far each chain is: latest block, what is final of it, what is indexed
verify     reads blocks again and says what of them the history does not have, or has otherwise, and which logs claim more
           tokens than are taken; of all that is indexed, unless --from and --to say less
backfill   reads blocks again and publishes what the history does not have as the chain says it, and nothing else: it can be
           repeated. Blocks that are not indexed yet are the indexer's, and refused here

Chains and their nodes are those of CHAINS_INDEXED, or of the stack that runs here.

Exit code: 0 done and all as expected, 1 something is missing or differs, or it ended early; 2 wrong words, 3 a node or a
store does not answer.`;

const text = { type: 'string' } as const;
const OPTIONS = {
  ...{ chain: text, from: text, to: text, 'writer-group': text },
  json: { type: 'boolean', default: false },
} as const;
const BLOCK_MAX = Number.MAX_SAFE_INTEGER;

/** What one call is about. */
interface Job {
  readonly context: ChainContext;
  readonly terminal: Terminal;
  readonly values: ReturnType<typeof parseOptions>['values'];
}

/** `chain`: how far chains are indexed, and whether the history has what they say. */
export function createChainCommand(context: ChainContext): Command {
  const run = async (args: readonly string[], terminal: Terminal): Promise<ExitCode> => {
    const { values, words } = parseOptions(args, OPTIONS, 1);
    const word = choiceOf({ word: words[0] }, 'word', { choices: ['status', 'verify', 'backfill'] });
    const job = { context, terminal, values };
    if (word === 'status') return status(job);
    return word === 'verify' ? verify(job) : backfill(job);
  };
  return { name: 'chain', summary: 'how far chains are indexed; compare the history with them', help: HELP, run };
}

const nodesOf = ({ context }: Job, { name, rpc }: IndexedChain) =>
  rpc.map((url, index) => context.createNode({ name: `${name}/${index + 1}`, url }));

function chainOf({ context, values }: Job): IndexedChain {
  const name = textOf(values, 'chain');
  if (name === undefined) throw new UsageError('--chain: which one?');
  const found = context.chains().find((each) => each.name === name);
  if (found === undefined) throw new UsageError(`--chain: ${name} is none of the chains that are indexed`);
  return found;
}

async function status(job: Job): Promise<ExitCode> {
  const { context, terminal, values } = job;
  const chains = textOf(values, 'chain') === undefined ? context.chains() : [chainOf(job)];
  const progress = await readProgress(context);
  for (const chain of chains) {
    const state = await stateOf(job, chain, progress.get(chain.name) ?? null);
    terminal.result(values.json === true ? JSON.stringify(state) : toStateLine(state));
  }
  if (chains.length === 0) terminal.result('no chain is indexed');
  return EXIT.ok;
}

async function stateOf(job: Job, chain: IndexedChain, progress: IndexProgressRecord | null) {
  const { finality } = chain;
  const ends = await askNodes(nodesOf(job, chain), async (node) => {
    const head = (await node.block('latest'))?.number ?? null;
    const said = finality === 'finalized' ? ((await node.block('finalized'))?.number ?? null) : null;
    return { head, horizon: finality === 'finalized' || head === null ? said : Math.max(0, head - finality) };
  });
  const indexed = lastIndexedOf(progress);
  const { head = null, horizon = null } = ends ?? {};
  const behind = horizon === null ? null : Math.max(0, horizon - (indexed ?? chain.start - 1));
  const changedAt = progress === null ? null : new Date(progress.changedAt).toISOString();
  return { chain: chain.name, head, horizon, indexed, behind, changedAt };
}

/** The last block of which everything is published; null when there is none. */
function lastIndexedOf(progress: IndexProgressRecord | null): number | null {
  if (progress === null) return null;
  return progress.nextLog === null ? progress.block : progress.block - 1;
}

function toStateLine({
  chain,
  head,
  horizon,
  indexed,
  behind,
  changedAt,
}: Awaited<ReturnType<typeof stateOf>>): string {
  const known = (value: number | string | null) => value ?? 'none';
  return (
    `${chain}: latest block ${known(head)}, final ${known(horizon)}, indexed ${known(indexed)}` +
    `${behind === null ? '' : `, ${behind} behind`}${changedAt === null ? '' : `, last told at ${changedAt}`}`
  );
}

/** What is read again: never more than what is indexed. */
async function rangeOf({ context, values }: Job, chain: IndexedChain) {
  const progress = (await readProgress(context)).get(chain.name) ?? null;
  const indexed = lastIndexedOf(progress);
  if (progress === null || indexed === null) throw new UsageError(`nothing of ${chain.name} is indexed yet`);
  const block = (name: string, fallback: number) => numberOf(values, name, { min: 0, max: BLOCK_MAX, fallback });
  const [from, to] = [block('from', chain.start), block('to', indexed)];
  if (!Number.isInteger(from) || !Number.isInteger(to) || from > to)
    throw new UsageError('--from and --to: expected two blocks, the first not behind the second');
  if (to > indexed)
    throw new UsageError(`--to: block ${indexed} is the last one that is indexed; the indexer goes on there`);
  const holds = [{ number: progress.block, hash: `0x${progress.hash.toString('hex')}` }];
  return { from, to, holds };
}

async function verify(job: Job): Promise<ExitCode> {
  const { context, terminal, values } = job;
  const chain = chainOf(job);
  const range = await rangeOf(job, chain);
  const store = context.openStore();
  const compared: Compared = { activities: 0, missing: 0, different: 0, findings: [] };
  const progress = createProgress(terminal);
  try {
    await awaitStore('ClickHouse', () => store.ready());
    for await (const read of readRanges({ chain, nodes: nodesOf(job, chain), ...range, stop: context.stop })) {
      await compareRange(store, read, compared);
      progress(`block ${read.to} of ${range.to}: ${compared.activities} activities looked at`);
    }
  } finally {
    await store.close();
  }
  for (const finding of compared.findings) terminal.progress(finding);
  const { activities, missing, different } = compared;
  const line = `${activities} activities of blocks ${range.from} to ${range.to}: ${missing} are not in the history, ${different} differ`;
  terminal.result(
    values.json === true ? JSON.stringify({ from: range.from, to: range.to, activities, missing, different }) : line,
  );
  return compared.findings.length > 0 || context.stop.aborted ? EXIT.failed : EXIT.ok;
}

async function backfill(job: Job): Promise<ExitCode> {
  const { context, terminal, values } = job;
  const chain = chainOf(job);
  if (textOf(values, 'from') === undefined || textOf(values, 'to') === undefined)
    throw new UsageError('--from and --to: which blocks?');
  const range = await rangeOf(job, chain);
  const writerGroup = textOf(values, 'writer-group') ?? 'activity-writer';
  const way = await openImportWay(ACTIVITIES, { ...context, writerGroup, onProgress: terminal.progress });
  const done = { activities: 0, published: 0, refused: 0 };
  try {
    for await (const { records, to } of readRanges({
      chain,
      nodes: nodesOf(job, chain),
      ...range,
      stop: context.stop,
    })) {
      if (records.length === 0) continue;
      const lines = records.map((record, index): Line => {
        return { number: index + 1, value: toShownContent(ACTIVITIES.toRow(record)), fault: null };
      });
      const { published, refused } = await way.import({
        ...{ chain: chain.name, tail: await way.readTail(), stop: context.stop, onProgress: () => {} },
        lines: async function* () {
          yield* lines;
        },
        onRefused: (number, faults) =>
          terminal.progress(`activity ${number} of those to block ${to}: ${faults.join('; ')}`),
      });
      done.activities += records.length;
      done.published += published;
      done.refused += refused;
    }
  } finally {
    await way.close();
  }
  const line = `${done.activities} activities of blocks ${range.from} to ${range.to}: ${done.published} published, ${done.refused} refused`;
  terminal.result(values.json === true ? JSON.stringify({ from: range.from, to: range.to, ...done }) : line);
  return done.refused > 0 || context.stop.aborted ? EXIT.failed : EXIT.ok;
}
