import type { NodeSettings } from '../chain-nodes.ts';
import { type CallNode, NodeFault } from '../node.ts';
import { createCallNode } from './index.ts';

interface ChainContract {
  readonly chain: string;
  readonly contractAddress: string;
}

/** A person waits for the result. */
const TIMEOUT_MS = 3_000;
/** An account without code, or one that delegates to a contract (EIP-7702). Neither is a contract. */
const NO_CONTRACT = /^0x(ef0100[0-9a-f]{40})?$/i;

/**
 * Creates a function that returns whether an address has the code of a contract, or null for a chain without nodes. It
 * queries all nodes until one has the code, because a lagging node may not have the block of a new contract.
 * @throws NodeFault if no node responds
 */
export function createReadCode(chains: readonly Pick<NodeSettings, 'name' | 'chainId' | 'urls'>[]) {
  return async ({ chain, contractAddress }: ChainContract): Promise<boolean | null> => {
    const settings = chains.find(({ name }) => name === chain);
    if (settings === undefined) return null;
    let fault: unknown = null;
    let hasResponse = false;
    for (const url of settings.urls) {
      try {
        if (await hasCode(createCallNode({ url, timeoutMs: TIMEOUT_MS }), settings.chainId, contractAddress))
          return true;
        hasResponse = true;
      } catch (error) {
        fault = error;
      }
    }
    if (hasResponse) return false;
    throw fault;
  };
}

async function hasCode(call: CallNode, chainId: number, address: string): Promise<boolean> {
  const [id, code] = await Promise.all([
    call({ method: 'eth_chainId', params: [] }),
    call({ method: 'eth_getCode', params: [address, 'latest'] }),
  ]);
  if (Number(id) !== chainId) throw new NodeFault('other-chain', 'the node is on another chain');
  if (typeof code !== 'string' || !code.startsWith('0x'))
    throw new NodeFault('unreachable', 'the code is not hexadecimal');
  return !NO_CONTRACT.test(code);
}
