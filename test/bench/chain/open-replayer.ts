import { callRpc } from '@playline/infra/chain';
import type { Bench } from '../figure.ts';
import { type Server, startPeer, startService } from '../services.ts';

/** Number of the chain after `eip155:`. No real chain has it. */
export const CANNED_CHAIN_NUMBER = 987_654_321;
/** Number of latest blocks that are not final. */
export const FINAL_DEPTH = 4;

export interface Replayer extends Server {
  readonly url: string;
  setHead(number: number): Promise<void>;
}

export async function openReplayer(
  bench: Bench,
  { logsPerBlock, head }: { logsPerBlock: number; head: number },
): Promise<Replayer> {
  const replayer = await startPeer(bench, 'chain/replayer', {
    environment: {
      HEAD: String(head),
      LOGS_PER_BLOCK: String(logsPerBlock),
      FINAL_DEPTH: String(FINAL_DEPTH),
      CHAIN_NUMBER: String(CANNED_CHAIN_NUMBER),
    },
  });
  const url = `http://127.0.0.1:${replayer.port}`;
  return { ...replayer, url, setHead: async (number) => void (await callRpc(url, 'bench_setHead', [number])) };
}

export interface MeasuredIndexer extends Server {
  /** Number of activities that it has published since it started and that brokers have acknowledged. */
  countPublished(): Promise<number>;
}

const COUNT = /^playline_chain_indexer_activities_total\{[^}]*\} (\d+)/gm;

/** @param chain `name`: the chain's own name in the topics of the bench */
export async function startIndexer(
  bench: Bench,
  node: Replayer,
  chain: { name: string; pollMs: number },
): Promise<MeasuredIndexer> {
  const indexer = await startService(bench, 'chain-indexer', {
    CHAIN_NODES: JSON.stringify([{ ...chain, id: `eip155:${CANNED_CHAIN_NUMBER}`, urls: [node.url] }]),
  });
  const countPublished = async () => {
    const text = await (await fetch(`http://127.0.0.1:${indexer.adminPort}/metrics`)).text();
    return [...text.matchAll(COUNT)].reduce((sum, [, count]) => sum + Number(count), 0);
  };
  return { ...indexer, countPublished };
}
