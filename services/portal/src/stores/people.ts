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

/** Who is one person, and what may be asked for about them. */
export interface PortalPeople {
  /** Keys of ids, by the deployment's pepper. */
  readonly keyOf: IdentityKeyer;
  /** @throws MissingEpochFault while Redis holds no whole graph */
  household(identity: IdentityInEnvironment): Promise<PersonMembers>;
  /** @throws MissingEpochFault while Redis holds no whole graph */
  suspects(environmentId: string): Promise<readonly Suspect[]>;
  /** As the gateway asks for one. @throws when the request does not stand, or nobody knows within ten seconds */
  readonly requestErasure: RequestErasure;
  /**
   * Asks for a split, and waits for it for five seconds.
   * @returns whether it was seen; else it stands in the log and is decided later, or was refused
   * @throws when nobody knows whether it stands
   */
  requestUnlink(wanted: PersonSplit & { readonly environmentId: string; readonly traceId: string }): Promise<boolean>;
}

export interface PortalPeopleParts extends Pick<LogParts, 'producer' | 'registry' | 'topicPrefix'> {
  /** `People` of `@playline/people`. */
  readonly people: RequestErasureParts['people'] & PersonSource & { readonly graph: Pick<IdentityGraph, 'suspects'> };
  readonly keyOf: IdentityKeyer;
  /** ERASURE_CLOCK_SKEW_MS, as the gateways have it. */
  readonly clockSkewMs: number;
  readonly onFault: (fault: unknown, words: string) => void;
  /** How long a split is waited for; `DECISION_MAX_MS` when absent. */
  readonly decisionMaxMs?: number;
}

const REQUEST_MAX_MS = 10_000;
const DECISION_MAX_MS = 5_000;
const POLL_EVERY_MS = 200;

/** Reads from the graph; what is asked for goes to the log, as that of gateways and the command does. */
export function createPortalPeople(parts: PortalPeopleParts): PortalPeople {
  const {
    people,
    keyOf,
    producer,
    registry,
    topicPrefix,
    clockSkewMs,
    onFault,
    decisionMaxMs = DECISION_MAX_MS,
  } = parts;
  const [erasures, links] = [topicPrefix + TOPICS.erasures.name, topicPrefix + TOPICS.identityLinks.name];
  const requestErasure = createRequestErasure({
    people,
    clockSkewMs,
    onFault,
    publish: (request) => producer.sendForOffset({ topic: erasures, ...request }, { attemptsMaxMs: REQUEST_MAX_MS }),
    schemaId: () => registry.idOf(schemaSubjectOf(erasures), erasureRequestCodec.schema),
  });
  return {
    keyOf,
    household: (identity) => readPersonMembers(people, identity),
    suspects: (environmentId) => people.graph.suspects(environmentId),
    // Behind the deadline the work goes on: a request that reaches the log late still needs its hold confirmed.
    requestErasure: (wanted) => settleWithin(REQUEST_MAX_MS, requestErasure(wanted)),
    async requestUnlink({ environmentId, traceId, leaving: gone, staying: stayed }) {
      const schemaId = await registry.idOf(schemaSubjectOf(links), identityLinkCodec.schema);
      const unlink = gone.map(({ key, kind }) => ({ key, kind }));
      const messageId = randomBytes(16);
      const fact = toUnlinkFact({ environmentId, messageId, traceId, receivedAt: Date.now(), unlink });
      const value = frameRecord(schemaId, identityLinkCodec.encode(fact));
      const record = { topic: links, key: Buffer.from(environmentId), value };
      await settleWithin(REQUEST_MAX_MS, producer.sendForOffset(record, { attemptsMaxMs: REQUEST_MAX_MS }));
      const personOf = async (key: Buffer) => (await readPerson(people, { environmentId, key })).personKey;
      const endAt = performance.now() + decisionMaxMs;
      for (;;) {
        const [of, rest] = [await personOf(gone[0]!.key), await personOf(stayed[0]!.key)];
        if (!of.equals(rest)) return true;
        if (performance.now() > endAt) return false;
        await delay(POLL_EVERY_MS);
      }
    },
  };
}
