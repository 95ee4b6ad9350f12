import { rename, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { callRpc } from './rpc.ts';

const inflate = promisify(gunzip);

/** The node writes the latest block first; all of the text may be large. */
const LATEST = /^\{"block":\{"number":"(0x[0-9a-f]+)"/;
const LATEST_BYTES = 100;

const hashOf = (block: { hash: string } | null) => block?.hash ?? null;

/**
 * Writes down all that a node holds but what waits for a block. The node's own way (`--state`) writes once a second whether
 * anything has changed or not, and into the file that it reads: killed meanwhile, it finds half a file. Here the old one
 * stands until the new one is whole.
 * @returns number of the latest block that is saved
 * @throws Error when the node does not answer, is another one meanwhile, or the file cannot be written
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
  // A node that was killed since has come back with the old file, and goes on from there.
  if (hashOf(await callRpc(rpc, 'eth_getBlockByHash', [before, false])) !== before)
    throw new Error('the chain was begun anew while it was saved');
  await rename(draft, path);
  return Number(latest);
}
