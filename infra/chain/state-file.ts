import { rename, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { callRpc } from './rpc.ts';

const inflate = promisify(gunzip);

/** The node writes the latest block first, so this much of the text is enough to find it. */
const LATEST = /^\{"block":\{"number":"(0x[0-9a-f]+)"/;
const LATEST_BYTES = 100;

const hashOf = (block: { hash: string } | null) => block?.hash ?? null;

/**
 * Saves the state of a node, without pending transactions. The node's own `--state` writes every second even without a
 * change, and writes directly into its file, so a kill leaves half a file. Here the old file stays until the new one is
 * complete.
 * @returns number of the latest saved block
 * @throws Error when the node does not answer, was replaced meanwhile, or the file cannot be written
 */
export async function saveState({ rpc, path }: { rpc: string; path: string }): Promise<number> {
  const before = hashOf(await callRpc(rpc, 'eth_getBlockByNumber', ['latest', false]));
  const packed = await callRpc<string>(rpc, 'anvil_dumpState');
  const text = await inflate(Buffer.from(packed.slice(2), 'hex'));
  const latest = LATEST.exec(text.toString('utf8', 0, LATEST_BYTES))?.[1];
  if (latest === undefined)
    throw new Error('the state of the chain is not written as it was: which block it has cannot be told');
  const draft = `${path}.${process.pid}.new`;
  await writeFile(draft, text, { mode: 0o600 });
  // If the node was killed meanwhile, it has restarted from the old file and no longer has this block.
  if (hashOf(await callRpc(rpc, 'eth_getBlockByHash', [before, false])) !== before)
    throw new Error('the chain was begun anew while it was saved');
  await rename(draft, path);
  return Number(latest);
}
