import type { IdentityGraph } from '@playline/identity';
import { awaitStore } from '../await-store.ts';
import { type Command, EXIT, parseOptions, UsageError } from '../command.ts';

/** The part of the graph that is needed to mint its epoch. */
export type OpenIdentityGraph = () => Promise<Pick<IdentityGraph, 'readEpoch' | 'mintEpoch' | 'close'>>;

const HELP = `usage: operator identity init

Mints the epoch of the identity graph in Redis, once; safe to repeat. For the set-up of a new deployment only: where
topics and tables hold data, an empty graph must be rebuilt, not declared complete. Needs REDIS_URL.`;

export function createIdentityCommand(openGraph: OpenIdentityGraph): Command {
  return {
    name: 'identity',
    summary: 'set up the identity graph',
    help: HELP,
    run: async (args, terminal) => {
      const { words } = parseOptions(args, {}, 1);
      if (words[0] !== 'init') throw new UsageError('expected init');
      const graph = await openGraph();
      try {
        // `ready` would ask for the epoch that is about to be minted; any answer will do.
        await awaitStore('Redis', async () => (await graph.readEpoch()) !== undefined);
        terminal.result(`epoch ${await graph.mintEpoch()}`);
      } finally {
        await graph.close();
      }
      return EXIT.ok;
    },
  };
}
