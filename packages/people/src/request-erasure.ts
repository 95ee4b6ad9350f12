import { randomUUID } from 'node:crypto';
import {
  type ErasureRequestRecord,
  erasureRequestCodec,
  frameRecord,
  IDENTITY_TYPES,
  type IdentityKind,
} from '@playline/contracts';
import type { IdentityGraph } from './graph.ts';
import type { ErasureGuards } from './guards.ts';
import type { People } from './people.ts';
import { MissingEpochFault } from './people.ts';

/** `userId` has no type, so it means the id in every type and untyped: contract, "User id". */
export const USER_KINDS: readonly IdentityKind[] = [...IDENTITY_TYPES, 'untyped'];

/** A record for `audience.erasures.v1`. */
export interface ErasureRequestToPublish {
  readonly key: Buffer;
  /** In the frame of its schema. */
  readonly value: Buffer;
  readonly headers: { readonly traceparent: string };
}

export interface RequestErasureParts {
  people: Pick<People, 'readEpoch'> & {
    graph: Pick<IdentityGraph, 'membersOf'>;
    guards: Pick<ErasureGuards, 'place' | 'confirm' | 'release'>;
  };
  /** Resolves when every in-sync replica has it. @throws when it was not stored, or when that is unknown */
  publish: (request: ErasureRequestToPublish) => Promise<unknown>;
  /** Id of the registered schema of requests. @throws while it is unknown */
  schemaId: () => number | Promise<number>;
  /** Largest difference between the clocks of two processes that accept erasures and messages, in milliseconds. */
  clockSkewMs: number;
  /** Called with faults that do not change the answer. */
  onFault: (fault: unknown, words: string) => void;
}

export interface WantedErasure {
  readonly environmentId: string;
  readonly subjectKeys: readonly Buffer[];
  readonly traceId: string;
  readonly traceparent: string;
}

/** Publishes the request. Resolves with the erasure's id (a UUID) when it is on the topic. */
export type RequestErasure = (wanted: WantedErasure) => Promise<string>;

/**
 * After this time a hold lapses whose request never reached the topic. Three times as long as the producer tries: no
 * request can reach the topic after its hold has lapsed.
 */
const HOLD_LAPSE_MS = 60_000;

/**
 * Starts an erasure: hold, then read the members, then publish. The order matters: after the hold no newer link can add
 * a stranger, so the members read afterwards belong to the subject.
 * @throws a fault when the request is not on the topic, or when that is unknown
 */
export function createRequestErasure(parts: RequestErasureParts): RequestErasure {
  const { people } = parts;
  const { guards } = people;
  return async (wanted) => {
    const { environmentId, subjectKeys, traceId } = wanted;
    const schemaId = await parts.schemaId();
    // Without an epoch the graph is lost or half rebuilt: members would be missing, and the rebuild would lose the
    // hold.
    if ((await people.readEpoch()) === null) throw new MissingEpochFault();
    const id = randomUUID();
    const erasureId = Buffer.from(id.replaceAll('-', ''), 'hex');
    const requestedAt = Date.now();
    const startMs = performance.now();
    const cutoffAt = requestedAt + parts.clockSkewMs;
    const name = { environmentId, erasureId };
    await guards.place({ ...name, keys: subjectKeys, cutoffMs: cutoffAt, lapsesAtMs: requestedAt + HOLD_LAPSE_MS });
    const members = await readMembers(parts, wanted).catch(async (fault) => {
      // Nothing was published, so the hold is not needed.
      await guards.release(name).catch((cause) => parts.onFault(cause, 'a hold is left to lapse'));
      throw fault;
    });
    // Members that were read late may come from links after the cut-off. Without them the eraser uses the decisions.
    const memberKeys = performance.now() - startMs < parts.clockSkewMs ? members : [];
    const request = {
      erasureId,
      environmentId,
      subjectKeys: [...subjectKeys],
      memberKeys,
      cutoffAt,
      requestedAt,
      traceId,
    };
    // After a fault the request may still be on the topic. Releasing the hold could then add a stranger to the erasure,
    // so the hold is left to lapse.
    await parts.publish(toRecord(request, schemaId, wanted.traceparent));
    // The request is on the topic, so a failure here does no harm: the eraser places the hold again when it reads it.
    await guards.confirm(name).catch((fault) => parts.onFault(fault, 'a hold could not be confirmed'));
    return id;
  };
}

/** All identities linked with the subject, without the subject itself. */
async function readMembers({ people }: RequestErasureParts, { environmentId, subjectKeys }: WantedErasure) {
  const components = await Promise.all(subjectKeys.map((key) => people.graph.membersOf(environmentId, key)));
  const members = new Map(components.flat().map(({ key }) => [key.toString('hex'), key]));
  for (const key of subjectKeys) members.delete(key.toString('hex'));
  return [...members.values()];
}

function toRecord(request: ErasureRequestRecord, schemaId: number, traceparent: string): ErasureRequestToPublish {
  return {
    key: Buffer.from(request.environmentId),
    value: frameRecord(schemaId, erasureRequestCodec.encode(request)),
    headers: { traceparent },
  };
}
