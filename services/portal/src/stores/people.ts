/** Reads people from the identity graph. Requests erasures and splits. */
import { erasureRequestCodec, identityLinkCodec, schemaSubjectOf, TOPICS } from '@playline/contracts';
import { settleWithin } from '@playline/http';
import {
  createRequestErasure,
  createRequestUnlink,
  type ErasureInput,
  type IdentityGraph,
  type IdentityInEnvironment,
  type IdentityKeyer,
  type PersonSource,
  type RequestErasureParts,
  readPersonMembers,
} from '@playline/people';
import type { LogParts } from './portal-records.ts';

export type PortalPeople = ReturnType<typeof createPortalPeople>;

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

export function createPortalPeople(parts: PortalPeopleParts) {
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
    /** @throws MissingEpochFault while the graph in Redis is incomplete */
    members: (identity: IdentityInEnvironment) => readPersonMembers(people, identity),
    /** @throws MissingEpochFault while the graph in Redis is incomplete */
    suspects: (environmentId: string) => people.graph.suspects(environmentId),
    /**
     * Continues after the deadline, because the hold must be confirmed even if the request is published late.
     * @throws Error if the request was not stored or if its outcome is still unknown after ten seconds
     */
    requestErasure: (request: ErasureInput) => settleWithin(REQUEST_MAX_MS, requestErasure(request)),
    requestUnlink: createRequestUnlink({
      people,
      publish: (fact) => settleWithin(REQUEST_MAX_MS, producer.sendForOffset({ topic: links, ...fact }, attempts)),
      schemaId: () => registry.idOf(schemaSubjectOf(links), identityLinkCodec.schema),
      decisionMaxMs: parts.decisionMaxMs ?? DECISION_MAX_MS,
    }),
  };
}
