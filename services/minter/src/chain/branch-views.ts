import { NodeFault, type RpcCall } from '@playline/chain';
import type { AskNode, AskNodeTogether } from './json-rpc.ts';
import { BLOCK, block, parseAnswer, toQuantity } from './node-shapes.ts';
import type { FindAncestor } from './parent-links.ts';

/** Ways to ask a node about blocks of one branch. */
export interface BranchQuestions {
  readonly ask: AskNode;
  readonly askTogether: AskNodeTogether;
  readonly findAncestor: FindAncestor;
}

type Block = NonNullable<ReturnType<typeof parseBlock>>;
type BlockTag = number | 'latest' | 'finalized';

/** Faults of a node that takes no batches; a node that does not answer at all has them too. */
const NO_BATCH = new Set(['unreachable', 'too-much']);

/**
 * Asks in one batch, which a single node answers. If the node takes no batches, asks one question after the other: then
 * the hashes of blocks must prove that the answers are of one branch.
 */
export async function askOneBranch<T>(inBatch: () => Promise<T>, apart: () => Promise<T>): Promise<T> {
  try {
    return await inBatch();
  } catch (fault) {
    if (!(fault instanceof NodeFault && NO_BATCH.has(fault.kind))) throw fault;
    return apart();
  }
}

export const toBlockQuestion = (at: BlockTag): RpcCall => ({
  method: BLOCK,
  params: [typeof at === 'number' ? toQuantity(at) : at, false],
});

/** Null: the node has no such block. */
export const parseBlock = (answer: unknown) => parseAnswer(block.nullable(), BLOCK, answer);

/** @throws NodeFault when the node has no such block */
export function parseExisting(answer: unknown, at: BlockTag): Block {
  const found = parseBlock(answer);
  if (found === null) throw new NodeFault('behind', `the node of the chain has no block ${at}`);
  return found;
}

/** Null: the node has no such block. */
export async function readBlock(ask: AskNode, at: BlockTag): Promise<Block | null> {
  const { method, params } = toBlockQuestion(at);
  return parseBlock(await ask(method, params));
}

/** @throws NodeFault when the node has no such block */
export async function readExisting(ask: AskNode, at: BlockTag): Promise<Block> {
  const { method, params } = toBlockQuestion(at);
  return parseExisting(await ask(method, params), at);
}

/**
 * Hashes of blocks that are on one branch, in their order, and the answer to another question, which must name its
 * block by its hash. Null: the node has no such block.
 */
export function viewBranch(
  { ask, askTogether, findAncestor }: BranchQuestions,
  numbers: readonly number[],
  other: RpcCall,
): Promise<{ readonly answer: unknown; readonly hashes: readonly (string | null)[] }> {
  const inBatch = async () => {
    // The last block comes first: a node that has the final one is on the branch that stays, for all further answers.
    const falling = numbers.toSorted((one, next) => next - one);
    const answers = await askTogether([...falling.map(toBlockQuestion), other]);
    const hashOf = (number: number) => parseBlock(answers[falling.indexOf(number)])?.hash ?? null;
    return { answer: answers.at(-1), hashes: numbers.map(hashOf) };
  };
  const apart = async () => {
    const end = await readBlock(
      ask,
      numbers.reduce((most, each) => Math.max(most, each), Number.NEGATIVE_INFINITY),
    );
    const hashes: (string | null)[] = [];
    for (const number of numbers) hashes.push(end === null ? null : await findAncestor(end, number));
    return { answer: await ask(other.method, other.params), hashes };
  };
  return askOneBranch(inBatch, apart);
}
