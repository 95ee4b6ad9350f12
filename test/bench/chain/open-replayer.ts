import { callRpc } from '@playline/infra/chain';
import type { Bench } from '../figure.ts';
import { findFreePort } from '../free-port.ts';
import { type Measured, openProcess, waitFor } from '../processes.ts';

/** Number of the chain after `eip155:`. No real chain has it. */
export const CANNED_CHAIN_NUMBER = 987_654_321;
/** Number of latest blocks that are not final. */
export const FINAL_DEPTH = 4;

/** A node of a generated chain. */
export interface Replayer extends Measured {
  readonly url: string;
  /** Sets the latest block. */
  setHead(number: number): Promise<void>;
}

/** Starts a node in a separate process. @param shape.head its latest block */
export async function openReplayer(
  { environment }: Bench,
  { logsABlock, head }: { logsABlock: number; head: number },
): Promise<Replayer> {
  const port = await findFreePort();
  const url = `http://127.0.0.1:${port}`;
  const replayer = openProcess('test/bench/chain/replayer.ts', {
    environment: {
      ...environment,
      HTTP_PORT: String(port),
      HEAD: String(head),
      LOGS_A_BLOCK: String(logsABlock),
      FINAL_DEPTH: String(FINAL_DEPTH),
      CHAIN_NUMBER: String(CANNED_CHAIN_NUMBER),
    },
  });
  const answers = async () => Number(await callRpc(url, 'eth_chainId')) === CANNED_CHAIN_NUMBER;
  await waitFor('the node of canned answers answers', answers, { measured: replayer, maxMs: 30_000 });
  return { ...replayer, url, setHead: async (number) => void (await callRpc(url, 'bench_setHead', [number])) };
}
