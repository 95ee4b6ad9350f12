/** Reads people from the identity graph. Requests erasures and splits. */
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { erasureRequestCodec, frameRecord, identityLinkCodec, schemaSubjectOf, TOPICS } from '@playline/contracts';
import { settleWithin } from '@playline/http';
import {
  createRequestErasure,
  type IdentityGraph,
  type IdentityInEnvironment,
  type IdentityKeyer,
  type PersonMembers,
  type PersonSource,
  type PersonSplit,
  type RequestErasure,
  type RequestErasureParts,
  readPerson,
  readPersonMembers,
  type Suspect,
  toUnlinkFact,
} from '@playline/people';
import type { LogParts } from './portal-records.ts';

export interface PortalPeople {
  readonly keyOf: IdentityKeyer;
  /** @throws MissingEpochFault while the graph in Redis is incomplete */
  members(identity: IdentityInEnvironment): Promise<PersonMembers>;
  /** @throws MissingEpochFault while the graph in Redis is incomplete */
  suspects(environmentId: string): Promise<readonly Suspect[]>;
  /** @throws Error if the request was not stored or if its outcome is still unknown after ten seconds */
  readonly requestErasure: RequestErasure;
  /**
   * Requests a split and waits up to five seconds for an identity linker to apply it.
   * @returns false if the split is still pending or was refused
   * @throws Error if the request may not have been published
   */
  requestUnlink(split: PersonSplit & { readonly environmentId: string; readonly traceId: string }): Promise<boolean>;
}

export interface PortalPeopleParts extends Pick<LogParts, 'producer' | 'registry' | 'topicPrefix'> {
  readonly people: RequestErasureParts['people'] & PersonSource & { readonly graph: Pick<IdentityGraph, 'suspects'> };
  readonly keyOf: IdentityKeyer;
  /** The setting `ERASURE_CLOCK_SKEW_MS`. */
  readonly clockSkewMs: number;
  readonly onFault: (fault: unknown, message: string) => void;
  /** Maximum time to wait for a split to be applied; defaults to `DECISION_MAX_MS`. */
  readonly decisionMaxMs?: number;
}

const REQUEST_MAX_MS = 10_000;
const DECISION_MAX_MS = 5_000;
const POLL_EVERY_MS = 200;

export function createPortalPeople(parts: PortalPeopleParts): PortalPeople {
  const { people, producer, registry, topicPrefix, clockSkewMs, onFault } = parts;
  const [erasures, links] = [topicPrefix + TOPICS.erasures.name, topicPrefix + TOPICS.identityLinks.name];
  const attempts = { attemptsMaxMs: REQUEST_MAX_MS };
  const requestErasure = createRequestErasure({
    people,
    clockSkewMs,
    onFault,
    publish: (request) => producer.sendForOffset({ topic: erasures, ...request }, attempts),
    schemaId: () => registry.idOf(schemaSubjectOf(erasures), erasureRequestCodec.schema),
  });
  return {
    keyOf: parts.keyOf,
    members: (identity) => readPersonMembers(people, identity),
    suspects: (environmentId) => people.graph.suspects(environmentId),
    // Continues after the deadline, because the hold must be confirmed even if the request is published late.
    requestErasure: (request) => settleWithin(REQUEST_MAX_MS, requestErasure(request)),
    async requestUnlink({ environmentId, traceId, leaving, staying }) {
      const schemaId = await registry.idOf(schemaSubjectOf(links), identityLinkCodec.schema);
      const unlink = leaving.map(({ key, kind }) => ({ key, kind }));
      const messageId = randomBytes(16);
      const fact = toUnlinkFact({ environmentId, messageId, traceId, receivedAt: Date.now(), unlink });
      const value = frameRecord(schemaId, identityLinkCodec.encode(fact));
      const record = { topic: links, key: Buffer.from(environmentId), value };
      await settleWithin(REQUEST_MAX_MS, producer.sendForOffset(record, attempts));
      const personOf = async (key: Buffer) => (await readPerson(people, { environmentId, key })).personKey;
      const endAt = performance.now() + (parts.decisionMaxMs ?? DECISION_MAX_MS);
      for (;;) {
        const [leavingPerson, stayingPerson] = [await personOf(leaving[0]!.key), await personOf(staying[0]!.key)];
        if (!leavingPerson.equals(stayingPerson)) return true;
        if (performance.now() > endAt) return false;
        await delay(POLL_EVERY_MS);
      }
    },
  };
}
