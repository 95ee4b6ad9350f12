import { createKeyVerifier, type KeyStore } from '@playline/access-keys';
import type { IdentityGraph } from '@playline/people';
import {
  type MemoryConsentStore,
  type MemoryErasureHolds,
  openMemoryConsentStore,
  openMemoryErasureHolds,
  openMemoryIdentityGraph,
} from '@playline/people/memory';
import type { AudiencePorts } from '../audience-ports.ts';

/** What consent and erasure of one test gateway work with, all in memory. */
export interface AudienceWorld {
  readonly consents: MemoryConsentStore;
  readonly holds: MemoryErasureHolds;
  /** Has an epoch. */
  readonly graph: IdentityGraph;
}

export async function openAudienceWorld(): Promise<AudienceWorld & { close(): Promise<void> }> {
  const graph = openMemoryIdentityGraph();
  await graph.mintEpoch();
  return { consents: openMemoryConsentStore(), holds: openMemoryErasureHolds(), graph, close: async () => {} };
}

/** @param own ports that a test puts in the place of the world's */
export function toPorts(
  { consents, holds, graph }: AudienceWorld,
  keys: { find: KeyStore['find']; prefix: string },
  own: Partial<AudiencePorts> = {},
): AudiencePorts {
  return {
    consents,
    holds,
    identities: graph,
    verifySecret: createKeyVerifier({ store: keys, prefix: keys.prefix, kind: 'secret' }),
    schemaIds: () => ({ consents: 3, erasures: 4 }),
    ...own,
  };
}
