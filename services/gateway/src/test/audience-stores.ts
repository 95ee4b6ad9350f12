import { createKeyVerifier, type KeyLookup, type KeyRecord } from '@playline/access-keys';
import { type MemoryPeople, openMemoryPeople } from '@playline/people/memory';
import type { AudiencePorts } from '../audience-routes.ts';

/** In-memory stores for consent and erasure in a test gateway. */
export interface AudienceStores {
  /** Has an epoch, which consents and erasures require. */
  readonly people: MemoryPeople;
}

export async function openAudienceStores(): Promise<AudienceStores & { close(): Promise<void> }> {
  const people = openMemoryPeople();
  await people.rebuild.mintEpoch();
  return { people, close: people.close };
}

/** @param overrides ports that replace the in-memory ports */
export function toPorts(
  { people }: AudienceStores,
  { keys, prefix }: { keys: Pick<KeyLookup<KeyRecord>, 'find' | 'isEmpty'>; prefix: string },
  overrides: Partial<AudiencePorts> = {},
): AudiencePorts {
  return {
    people,
    consents: people.consents,
    verifySecret: createKeyVerifier({ keys, prefix, kind: 'secret' }),
    schemaIds: () => ({ consents: 3, erasures: 4 }),
    ...overrides,
  };
}
