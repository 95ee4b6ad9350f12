import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { frameRecord, identityLinkCodec } from '@playline/contracts';
import { toUnlinkFact } from './identities/facts.ts';
import { type PersonSource, type PersonSplit, readPerson } from './people.ts';

export interface RequestUnlinkParts {
  readonly people: PersonSource;
  /** Resolves once all in-sync replicas have stored the fact. @throws if the fact may not have been stored */
  readonly publish: (fact: { readonly key: Buffer; readonly value: Buffer }) => Promise<unknown>;
  /** Id of the registered schema of link facts. @throws if the schema is not registered yet */
  readonly schemaId: () => number | Promise<number>;
  /** Maximum time to wait for the decision. */
  readonly decisionMaxMs: number;
}

const POLL_EVERY_MS = 200;

/**
 * Requests a split and waits for an identity linker to apply it.
 * @returns false if the split is still pending or was refused
 * @throws Error if the request may not have been published
 */
export type RequestUnlink = (
  split: PersonSplit & { readonly environmentId: string; readonly traceId: string },
) => Promise<boolean>;

export function createRequestUnlink({ people, publish, schemaId, decisionMaxMs }: RequestUnlinkParts): RequestUnlink {
  return async ({ environmentId, traceId, leaving, staying }) => {
    const unlink = leaving.map(({ key, kind }) => ({ key, kind }));
    const messageId = randomBytes(16);
    const fact = toUnlinkFact({ environmentId, messageId, traceId, receivedAt: Date.now(), unlink });
    const value = frameRecord(await schemaId(), identityLinkCodec.encode(fact));
    await publish({ key: Buffer.from(environmentId), value });
    const personOf = async (key: Buffer) => (await readPerson(people, { environmentId, key })).personKey;
    const endAt = performance.now() + decisionMaxMs;
    for (;;) {
      const [leavingPerson, stayingPerson] = [await personOf(leaving[0]!.key), await personOf(staying[0]!.key)];
      if (!leavingPerson.equals(stayingPerson)) return true;
      if (performance.now() > endAt) return false;
      await delay(POLL_EVERY_MS);
    }
  };
}
