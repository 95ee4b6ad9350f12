// Saves the state of the chain node.
import { rename, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { callRpc } from './rpc.ts';

const inflate = promisify(gunzip);

/** Matches the latest block, which the node writes first. */
const LATEST = /^\{"block":\{"number":"(0x[0-9a-f]+)"/;
const LATEST_BYTES = 100;

const hashOf = (block: { hash: string } | null) => block?.hash ?? null;

/**
 * Saves the state and replaces the file atomically. The node's `--state` option leaves a truncated file when the node
 * is killed. Pending transactions are not saved.
 * @returns the latest saved block number
 * @throws Error if the node does not respond or was replaced, or if the file cannot be written
 */
export async function saveState({ rpc, path }: { rpc: string; path: string }): Promise<number> {
  const before = hashOf(await callRpc(rpc, 'eth_getBlockByNumber', ['latest', false]));
  const packed = await callRpc<string>(rpc, 'anvil_dumpState');
  const text = await inflate(Buffer.from(packed.slice(2), 'hex'));
  const latest = LATEST.exec(text.toString('utf8', 0, LATEST_BYTES))?.[1];
  if (latest === undefined) throw new Error('the chain state has an unknown format: the latest block is missing');
  const temporaryPath = `${path}.${process.pid}.new`;
  await writeFile(temporaryPath, text, { mode: 0o600 });
  // A node that was killed during the save has restarted from the old file without this block.
  if (hashOf(await callRpc(rpc, 'eth_getBlockByHash', [before, false])) !== before)
    throw new Error('the chain restarted during the save');
  await rename(temporaryPath, path);
  return Number(latest);
}
