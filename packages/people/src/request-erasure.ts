import { randomUUID } from 'node:crypto';
import {
  type ErasureRequestRecord,
  erasureRequestCodec,
  frameRecord,
  IDENTITY_TYPES,
  type IdentityKind,
} from '@playline/contracts';
import { MissingEpochFault } from './faults.ts';
import type { IdentityGraph } from './graph.ts';
import type { ErasureGuards } from './guards.ts';
import type { People } from './people.ts';

/** `userId` carries no type, so it is meant in every type and untyped: contract, "User id". */
export const USER_KINDS: readonly IdentityKind[] = [...IDENTITY_TYPES, 'untyped'];

/** A request as it goes to `audience.erasures.v1`. */
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
  /** Resolves when every in-sync replica has it. @throws when it does not stand, or nobody knows */
  publish: (request: ErasureRequestToPublish) => Promise<unknown>;
  /** Id under which the schema of requests is registered. @throws while it is not known */
  schemaId: () => number | Promise<number>;
  /** How far the clocks of two processes that take erasures and messages may lie apart. */
  clockSkewMs: number;
  /** Told of faults that change no answer. */
  onFault: (fault: unknown, words: string) => void;
}

export interface WantedErasure {
  readonly environmentId: string;
  readonly subjectKeys: readonly Buffer[];
  readonly traceId: string;
  readonly traceparent: string;
}

/** Records the wish; resolves to the erasure's id (a UUID) when the request stands on the topic. */
export type RequestErasure = (wanted: WantedErasure) => Promise<string>;

/**
 * After this time a hold lapses whose request never reached the topic. Three times as long as the producer tries: no
 * request can reach the topic after its hold has lapsed.
 */
const HOLD_LAPSE_MS = 60_000;

/**
 * How an erasure begins: hold, then read who is known, then publish. The order is the guarantee: from the hold on no
 * newer link can drag a stranger in, so the members read after it are the subject's own.
 * @throws a fault before the request stands on the topic, or when nobody knows whether it does
 */
export function createRequestErasure(parts: RequestErasureParts): RequestErasure {
  const { people } = parts;
  const { guards } = people;
  return async (wanted) => {
    const { environmentId, subjectKeys, traceId } = wanted;
    const schemaId = await parts.schemaId();
    // Without it the graph is lost or half rebuilt: its members would be too few, and the rebuild would lose the hold.
    if ((await people.readEpoch()) === null) throw new MissingEpochFault();
    const id = randomUUID();
    const erasureId = Buffer.from(id.replaceAll('-', ''), 'hex');
    const requestedAt = Date.now();
    const startMs = performance.now();
    const cutoffAt = requestedAt + parts.clockSkewMs;
    const name = { environmentId, erasureId };
    await guards.place({ ...name, keys: subjectKeys, cutoffMs: cutoffAt, lapsesAtMs: requestedAt + HOLD_LAPSE_MS });
    const members = await readMembers(parts, wanted).catch(async (fault) => {
      // Nothing was published, so nothing needs the hold.
      await guards.release(name).catch((cause) => parts.onFault(cause, 'a hold is left to lapse'));
      throw fault;
    });
    // Read later than the cut-off they may be linked by what came later. The decisions tell the eraser who is known.
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
    // After a fault nobody knows whether the request stands: letting go at once could drag a stranger into an erasure
    // that happens all the same. The hold lapses instead.
    await parts.publish(toRecord(request, schemaId, wanted.traceparent));
    // The request stands, whatever becomes of this: the eraser places the hold again when it reads the request.
    await guards.confirm(name).catch((fault) => parts.onFault(fault, 'a hold could not be confirmed'));
    return id;
  };
}

/** Everybody linked with the subject, without the subject itself. */
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
