import { randomUUID } from 'node:crypto';
import {
  type ErasureRequestRecord,
  erasureRequestCodec,
  frameRecord,
  IDENTITY_TYPES,
  type IdentityKind,
} from '@playline/contracts';
import type { IdentityGraph } from './graph.ts';
import { MissingEpochFault, type People } from './people.ts';

/**
 * The hold of one erasure: until the erasure is finished, links wait that are newer than its cut-off and touch one of
 * its keys.
 */
export interface ErasureHold {
  readonly environmentId: string;
  /** 16 bytes, a UUID. */
  readonly erasureId: Buffer;
  /** Identity keys, 16 bytes each. */
  readonly keys: readonly Buffer[];
  /** Epoch milliseconds: the time of the request. */
  readonly cutoffMs: number;
  /** Epoch milliseconds from which the hold may be dropped; null once the erasure's request is on the topic. */
  readonly lapsesAtMs: number | null;
}

/** A hold without its keys. */
export type StoredHold = Omit<ErasureHold, 'environmentId' | 'keys'>;

export type HoldName = Pick<ErasureHold, 'environmentId' | 'erasureId'>;

/** For erasures: nothing of this identity that is not later than the cut-off (epoch milliseconds) may remain. */
export interface Cutoff {
  readonly environmentId: string;
  readonly key: Buffer;
  readonly cutoffMs: number;
}

/**
 * Keeps an erased person from coming back. A hold exists while the erasure runs: links newer than its cut-off wait. A
 * fence stays forever: links and consents not later than its cut-off are refused.
 *
 * Several erasures may hold one identity. Each releases its own hold only, and of those that are left the latest
 * cut-off counts.
 */
export interface ErasureGuards {
  /** Holds every key, and replaces what this erasure held before. In effect when it resolves. */
  putHold(hold: ErasureHold): Promise<void>;
  /**
   * Notes that the request is on the topic, so the hold does not expire any more.
   * @returns false when there is no such hold. Then none is created, since the erasure may be finished already
   */
  confirmHold(name: HoldName): Promise<boolean>;
  /**
   * Like `place`, but only if this erasure has a hold already. If the erasure is finished, nobody would release a hold
   * that a paused eraser places.
   * @returns whether it has one
   */
  extendHold(hold: ErasureHold): Promise<boolean>;
  /** Holds of an environment. */
  listHolds(environmentId: string): Promise<StoredHold[]>;
  /** Releases a hold; does nothing when there is none. */
  releaseHold(name: HoldName): Promise<void>;
  /**
   * Releases every hold whose request never reached the topic.
   * @returns how many
   */
  dropLapsedHolds(nowMs: number): Promise<number>;
  /**
   * For each identity, from when on links of its person wait, as the identity graph would decide now. A link received
   * later than this (epoch milliseconds) waits; null while no identity of the person is held. Identities of one person
   * get the same answer, even if a hold ends meanwhile.
   * @throws MissingEpochFault, since an empty store would say that nobody is held
   */
  heldFrom(environmentId: string, keys: readonly Buffer[]): Promise<(number | null)[]>;
  /** Sets fences; a later fence of an identity stays. Safe to repeat, with or without an epoch. */
  fence(cutoffs: readonly Cutoff[]): Promise<void>;
  /**
   * Sets fences like `fence`, and removes what they should have kept out: links and consents not later than the cut-off.
   * For a store that has gone back to an earlier state, and for checks. Later links of these identities are in the log
   * after that state, and are applied again.
   */
  enforce(cutoffs: readonly Cutoff[]): Promise<Enforced>;
  fenceStatus(): Promise<FenceStatus>;
  /**
   * Notes that the fences of all erased people are set and enforced.
   * @returns false, and changes nothing, when `run` is over: fences set in it may be lost again
   */
  completeFences(run: string): Promise<boolean>;
}

/** What was there although a fence should have kept it out. */
export interface Enforced {
  /** Identities that were taken out of the graph. */
  readonly links: number;
  readonly consents: number;
}

/** Whether the store has all fences. A run of the store lasts from its start, or its promotion, to the next one. */
export interface FenceStatus {
  /** Identifies the present run. */
  readonly run: string;
  /** False from the start of a run until the fences were set again, since a restarted store may have lost some. */
  readonly isComplete: boolean;
}

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
    guards: Pick<ErasureGuards, 'putHold' | 'confirmHold' | 'releaseHold'>;
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
    await guards.putHold({ ...name, keys: subjectKeys, cutoffMs: cutoffAt, lapsesAtMs: requestedAt + HOLD_LAPSE_MS });
    const members = await readMembers(parts, wanted).catch(async (fault) => {
      // Nothing was published, so the hold is not needed.
      await guards.releaseHold(name).catch((cause) => parts.onFault(cause, 'a hold is left to lapse'));
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
    await guards.confirmHold(name).catch((fault) => parts.onFault(fault, 'a hold could not be confirmed'));
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
