import { type BlockName, NodeFault } from '@playline/chain';
import type { ChainHead } from '../ports.ts';
import {
  askOneBranch,
  type BranchQuestions,
  parseBlock,
  parseExisting,
  readBlock,
  readExisting,
  toBlockQuestion,
} from './branch-views.ts';

/** Final blocks: those that the node calls `finalized`, or those at least this many blocks behind its latest one. */
export type Finality = 'finalized' | number;

/** The latest block may move back between two questions, after a reorganisation or between two nodes. */
const TRIES = 3;

/**
 * Reads the end of the chain, the last final block, and the block at the number that was final before, as one node has
 * them at one moment. Of two nodes behind one address, one might lag, and its block so far behind the latest block of
 * the other might not be final at all.
 * @param known null: no block was final before
 */
export function readHead(questions: BranchQuestions, finality: Finality, known: number | null): Promise<ChainHead> {
  return askOneBranch(
    () => readTogether(questions, finality, known),
    () => readApart(questions, finality, known),
  );
}

async function readTogether(
  { ask, askTogether }: BranchQuestions,
  finality: Finality,
  known: number | null,
): Promise<ChainHead> {
  const view = async (final: number | 'finalized') => {
    // The latest block comes last: it can only be further from the final one than it was when that was read.
    const tags = [...(known === null ? [] : [known]), final, 'latest' as const];
    const answers = await askTogether(tags.map(toBlockQuestion));
    const knownHash = known === null ? null : (parseBlock(answers[0])?.hash ?? null);
    const [end, latest] = [parseExisting(answers.at(-2), final), parseExisting(answers.at(-1), 'latest')];
    return toHead(latest, end, knownHash);
  };
  if (finality === 'finalized') return view(finality);
  let { number } = await readExisting(ask, 'latest');
  for (let tries = 0; tries < TRIES; tries++) {
    const head = await view(toHorizon(number, finality));
    if (head.number >= number) return head;
    ({ number } = head);
  }
  throw new NodeFault('behind', 'the latest block of the node of the chain moves back');
}

/** For a node that takes no batches: a block is so far behind the latest one because links of hashes lead to it. */
async function readApart(
  { ask, findAncestor }: BranchQuestions,
  finality: Finality,
  known: number | null,
): Promise<ChainHead> {
  const knownHash = known === null ? null : ((await readBlock(ask, known))?.hash ?? null);
  if (finality === 'finalized') {
    const end = await readExisting(ask, finality);
    return toHead(await readExisting(ask, 'latest'), end, knownHash);
  }
  const latest = await readExisting(ask, 'latest');
  const number = toHorizon(latest.number, finality);
  return toHead(latest, { number, hash: await findAncestor(latest, number) }, knownHash);
}

const toHorizon = (latest: number, depth: number) => Math.max(0, latest - depth);

function toHead(
  { number, baseFeePerGas: baseFee }: Awaited<ReturnType<typeof readExisting>>,
  { number: finalized, hash: finalizedHash }: BlockName,
  knownHash: string | null,
): ChainHead {
  if (finalized > number)
    throw new NodeFault('behind', `the node of the chain ends before block ${finalized}, which it calls final`);
  return { number, baseFee, finalized, finalizedHash, knownHash };
}
