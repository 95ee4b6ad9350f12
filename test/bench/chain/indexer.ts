import type { Bench } from '../figure.ts';
import type { Measured } from '../processes.ts';
import { openReady } from './open-ready.ts';
import { CANNED_CHAIN_NUMBER, type Replayer } from './open-replayer.ts';

/** An indexer of one chain, as it is deployed. */
export interface MeasuredIndexer extends Measured {
  /** Number of activities that it has published since it started. They count once brokers have acknowledged them. */
  countPublished(): Promise<number>;
}

/** @param chain `name`: the chain's own name in the topics of the bench; `pollMs`: default of the service */
export async function openIndexer(
  bench: Bench,
  node: Replayer,
  chain: { name: string; pollMs?: number },
): Promise<MeasuredIndexer> {
  const indexer = await openReady(bench, 'chain-indexer', {
    CHAIN_NODES: JSON.stringify([{ ...chain, id: `eip155:${CANNED_CHAIN_NUMBER}`, urls: [node.url] }]),
  });
  return { ...indexer, countPublished: () => countPublished(indexer.adminPort) };
}

const COUNT = /^playline_chain_indexer_activities_total\{[^}]*\} (\d+)/gm;

async function countPublished(port: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  return [...text.matchAll(COUNT)].reduce((sum, [, count]) => sum + Number(count), 0);
}
