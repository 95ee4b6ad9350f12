import { NodeFault } from '@playline/chain';
import { z } from 'zod';
import type { SpentNonce } from '../ports.ts';
import { type BranchQuestions, viewBranch } from './branch-views.ts';
import { type AskNode, NodeRefusal } from './json-rpc.ts';
import { BLOCK, block, count, hex, NONCES, parseAnswer, toQuantity } from './node-shapes.ts';

const fullBlock = block.extend({ transactions: z.array(z.object({ hash: hex, from: hex, nonce: count })) });

/**
 * Finds the transaction that spent a nonce: first its block, by binary search over the address's transaction count,
 * then the transaction in that block. The counts only say where to look. The transaction is the proof, and only if its
 * block is on the branch of the final block. Null when the node no longer has the counts of that time.
 */
export async function findSpender(questions: BranchQuestions, spent: SpentNonce): Promise<string | null> {
  const number = await findBlock(questions.ask, spent).catch((fault: unknown) => {
    if (fault instanceof NodeRefusal) return null;
    throw fault;
  });
  if (number === null) return null;
  const { horizon, address, nonce } = spent;
  const full = { method: BLOCK, params: [toQuantity(number), true] };
  const { answer, hashes } = await viewBranch(questions, [number, horizon.number], full);
  const [blockHash, horizonHash] = hashes;
  if (horizonHash !== horizon.hash)
    throw new NodeFault('inconsistent', `the node has another block ${horizon.number} than the one that was final`);
  const found = parseAnswer(fullBlock.nullable(), BLOCK, answer);
  if (found === null || found.hash !== blockHash) return null;
  return found.transactions.find((each) => each.from === address && each.nonce === nonce)?.hash ?? null;
}

/** The block that spent the nonce; null: none up to the final block. @throws NodeRefusal without state that old */
async function findBlock(ask: AskNode, { address, nonce, horizon }: SpentNonce): Promise<number | null> {
  const isSpentAt = async (number: number) =>
    parseAnswer(count, NONCES, await ask(NONCES, [address, toQuantity(number)])) > nonce;
  if (!(await isSpentAt(horizon.number))) return null;
  // It was probably spent recently, so search backwards in steps that double.
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
