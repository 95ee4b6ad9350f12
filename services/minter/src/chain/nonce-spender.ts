import { NodeFault } from '@playline/chain';
import { z } from 'zod';
import type { SpentNonce } from '../ports.ts';
import { type AskNodeTogether, NodeRefusal } from './json-rpc.ts';
import { BLOCK, block, count, hex, parseAnswer, toQuantity } from './node-shapes.ts';

const fullBlock = block.extend({ transactions: z.array(z.object({ hash: hex, from: hex, nonce: count })) });

export interface SpenderQuestions {
  readonly read: <T>(schema: z.ZodType<T>, method: string, params: readonly unknown[]) => Promise<T>;
  readonly askTogether: AskNodeTogether;
}

/**
 * Finds the transaction that has spent a nonce: the block in which the count of the address passed it, by halving, then the
 * transaction in there. Only that is a proof, and only where the node that gives the block has, in the same answer, the block
 * at the horizon. Counts of earlier blocks only say where to look; a node that has none of them any more cannot tell.
 * @throws NodeFault for a node of another branch
 */
export async function findSpender(questions: SpenderQuestions, spent: SpentNonce): Promise<string | null> {
  const number = await findBlock(questions, spent).catch((fault: unknown) => {
    if (fault instanceof NodeRefusal) return null;
    throw fault;
  });
  if (number === null) return null;
  const { horizon, address, nonce } = spent;
  const [found, end] = await questions.askTogether([
    { method: BLOCK, params: [toQuantity(number), true] },
    { method: BLOCK, params: [toQuantity(horizon.number), false] },
  ]);
  if (parseAnswer(block.nullable(), BLOCK, end)?.hash !== horizon.hash)
    throw new NodeFault('inconsistent', `the node has another block ${horizon.number} than the one that was final`);
  const transactions = parseAnswer(fullBlock.nullable(), BLOCK, found)?.transactions ?? [];
  return transactions.find((each) => each.from === address && each.nonce === nonce)?.hash ?? null;
}

/** The block in which the nonce was spent; null: not up to the horizon. @throws NodeRefusal without states of that time */
async function findBlock({ read }: SpenderQuestions, { address, nonce, horizon }: SpentNonce): Promise<number | null> {
  const isSpentAt = async (number: number) =>
    (await read(count, 'eth_getTransactionCount', [address, toQuantity(number)])) > nonce;
  if (!(await isSpentAt(horizon.number))) return null;
  // It was mostly spent a moment ago: further back by steps that double.
  let [before, at] = [Math.max(-1, horizon.number - 1), horizon.number];
  for (let step = 1; before >= 0 && (await isSpentAt(before)); step *= 2)
    [before, at] = [Math.max(-1, before - step), before];
  while (at - before > 1) {
    const middle = Math.floor((before + at) / 2);
    if (await isSpentAt(middle)) at = middle;
    else before = middle;
  }
  return at;
}
