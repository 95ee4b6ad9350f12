import { PublicError } from '@playline/errors';
import { toPartition } from '@playline/stream';
import type { ChainSettings } from './config.ts';

export interface Chain extends ChainSettings {
  /** Kafka partition of the chain's activities. */
  readonly partition: number;
}

/** @throws PublicError RESOURCE_NOT_FOUND */
export type RequireChain = (name: string) => Chain;

/** @param partitionCount number of partitions of the activity topic */
export function toChains(chains: readonly ChainSettings[], partitionCount: number): readonly Chain[] {
  return chains.map((chain) => ({ ...chain, partition: toPartition(Buffer.from(chain.name), partitionCount) }));
}

export function createRequireChain(chains: readonly Chain[]): RequireChain {
  const byName = new Map(chains.map((chain) => [chain.name, chain]));
  return (name) => {
    const chain = byName.get(name);
    if (chain === undefined) throw new PublicError('RESOURCE_NOT_FOUND', { message: 'There is no such chain.' });
    return chain;
  };
}
