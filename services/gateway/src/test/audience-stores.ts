import { createKeyVerifier, type KeyLookup, type KeyRecord } from '@playline/access-keys';
import { type MemoryPeople, openMemoryPeople } from '@playline/people/memory';
import type { AudiencePorts } from '../audience-routes.ts';

/** In-memory ports of consent and erasure for one test gateway. */
export interface AudienceStores {
  /** Has an epoch, so that it can decide. */
  readonly people: MemoryPeople;
}

export async function openAudienceStores(): Promise<AudienceStores & { close(): Promise<void> }> {
  const people = openMemoryPeople();
  await people.rebuild.mintEpoch();
  return { people, close: people.close };
}

/** @param own ports of a test that replace the world's */
export function toPorts(
  { people }: AudienceStores,
  { keys, prefix }: { keys: Pick<KeyLookup<KeyRecord>, 'find' | 'isEmpty'>; prefix: string },
  own: Partial<AudiencePorts> = {},
): AudiencePorts {
  return {
    people,
    consents: people.consents,
    verifySecret: createKeyVerifier({ keys, prefix, kind: 'secret' }),
    schemaIds: () => ({ consents: 3, erasures: 4 }),
    ...own,
  };
}
