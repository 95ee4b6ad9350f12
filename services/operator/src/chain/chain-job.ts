import type { ChainNode, IndexedChain } from '@playline/chain';
import { type Deps, type JsonOption, UsageError } from '../command.ts';
import type { ImportSources } from '../import/importer.ts';
import type { WritableLogSources } from '../writable-log.ts';

export interface ChainContext extends ImportSources, WritableLogSources {
  readonly chains: () => readonly IndexedChain[];
  readonly createNode: (node: { name: string; url: string }) => ChainNode;
  readonly wallClockMs: () => number;
  readonly stop: AbortSignal;
}
export type ChainJob = Deps<ChainContext>;

export const nodesOf = ({ context }: ChainJob, { name, urls }: IndexedChain): readonly ChainNode[] =>
  urls.map((url, index) => context.createNode({ name: `${name}/${index + 1}`, url }));

/** @throws UsageError for a chain that is not indexed */
export function chainOf({ context }: ChainJob, name: string): IndexedChain {
  const found = context.chains().find((each) => each.name === name);
  if (found === undefined) throw new UsageError(`--chain: ${name} is not an indexed chain`);
  return found;
}

export interface ChainOptions extends JsonOption {
  readonly chain: string;
}
