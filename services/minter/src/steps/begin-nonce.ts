import { toHexText } from '@playline/contracts';
import type { LaneContext, LaneTurn } from '../lane/lane-context.ts';

/** The nonce of the next new transaction, or why there is none. */
export type NextNonce =
  | { readonly kind: 'nonce'; readonly nonce: number }
  | { readonly kind: 'refused'; readonly reason: string };

const refused = (reason: string): NextNonce => ({ kind: 'refused', reason });

/** Why the node's chain is not the one that the signer's transactions are for; null when it is. */
export function findChainMistake(
  { ledger, rules }: Pick<LaneContext, 'ledger' | 'rules'>,
  { chainId, genesisHash }: { readonly chainId: number; readonly genesisHash: Buffer },
): string | null {
  if (chainId !== rules.chainId) return `The node serves the chain ${chainId}, and ${rules.chainId} is set.`;
  if (ledger.genesisHash === null || ledger.genesisHash.equals(genesisHash)) return null;
  return 'The node serves another chain than the one that earlier transactions were signed for.';
}

/**
 * Finds the next nonce: one more than the largest in the log, while no unknown transaction has taken it. A signer without records begins after its finalized
 * transactions, and not while it has others: after the loss of a log, it would reuse nonces that it has sent.
 */
export async function findNextNonce({ lane, ledger, node, head }: LaneTurn): Promise<NextNonce> {
  const address = toHexText(lane.signer);
  if (ledger.highWater !== null) {
    const nonce = ledger.highWater + 1;
    const [latest = 0, pending = 0] = await node.spentNonces(address, ['latest', 'pending']);
    if (latest > nonce)
      return refused(
        'Transactions of this address stand in the chain that are not known here: somebody else has its key.',
      );
    // With a transaction of ours whose record was lost, the next one would compete for the nonce: whichever is in a
    // block, the assets of the other would be carried again, though they may be the same.
    if (pending <= nonce) return { kind: 'nonce', nonce };
    return refused(
      'The node has a transaction of this address that is in no block and not known here: somebody else has its key, or the end of the log was lost.',
    );
  }
  // The final count comes first: what is sent meanwhile makes the others larger, and then nothing begins.
  const [nonce = 0, latest = 0, pending = 0] = await node.spentNonces(address, [head.finalized, 'latest', 'pending']);
  if (latest <= nonce && pending <= nonce) return { kind: 'nonce', nonce };
  return refused('The address has transactions that are not final and not known here.');
}
