/** Holds and fences of erasures, and how a gateway requests an erasure. */
import { randomUUID } from 'node:crypto';
import { erasureRequestCodec, frameRecord, IDENTITY_TYPES, type IdentityKind } from '@playline/contracts';
import type { IdentityGraph } from './graph.ts';
import { MissingEpochFault, type People } from './people.ts';

/** Until the erasure is finished, links that are newer than its cut-off and contain one of its keys wait. */
export interface ErasureHold {
  readonly environmentId: string;
  /** 16 bytes, a UUID. */
  readonly erasureId: Buffer;
  /** Identity keys, 16 bytes each. */
  readonly keys: readonly Buffer[];
  readonly cutoffMs: number;
  /** Epoch milliseconds from which the hold may be dropped; null once the erasure's request is on the topic. */
  readonly lapsesAtMs: number | null;
}

export type StoredHold = Omit<ErasureHold, 'environmentId' | 'keys'>;

export type HoldName = Pick<ErasureHold, 'environmentId' | 'erasureId'>;

/** The identity's data up to the cut-off (epoch milliseconds) is erased and refused. */
export interface Cutoff {
  readonly environmentId: string;
  readonly key: Buffer;
  readonly cutoffMs: number;
}

/**
 * Holds delay links while an erasure runs; fences refuse links and consents up to its cut-off forever. Several erasures
 * may hold one identity, and the latest cut-off of the remaining holds applies.
 */
export interface ErasureGuards {
  /** Creates or replaces an erasure's hold, which is in effect when the promise resolves. */
  putHold(hold: ErasureHold): Promise<void>;
  /**
   * Records that the request is on the topic, so that the hold does not expire.
   * @returns false, without a change, when there is no hold: the erasure may be finished
   */
  confirmHold(name: HoldName): Promise<boolean>;
  /**
   * Replaces a hold only if it exists: a paused eraser must not create a hold that no eraser releases.
   * @returns whether the erasure has a hold
   */
  extendHold(hold: ErasureHold): Promise<boolean>;
  listHolds(environmentId: string): Promise<StoredHold[]>;
  /** Does nothing when there is no hold. */
  releaseHold(name: HoldName): Promise<void>;
  /** Releases expired holds, whose requests never reached the topic. @returns the number of released holds */
  dropLapsedHolds(nowMs: number): Promise<number>;
  /**
   * The time (epoch milliseconds) after which links of each identity's person wait; null without a hold. Identities of
   * one person get the same result.
   * @throws MissingEpochFault
   */
  heldFrom(environmentId: string, keys: readonly Buffer[]): Promise<(number | null)[]>;
  /** Sets fences; an identity's existing later fence is kept. May be repeated, with or without an epoch. */
  fence(cutoffs: readonly Cutoff[]): Promise<void>;
  /**
   * Sets fences and removes links and consents up to the cut-off. Later links of the identities are in the log and
   * are applied again.
   */
  enforce(cutoffs: readonly Cutoff[]): Promise<Enforced>;
  fenceStatus(): Promise<FenceStatus>;
  /**
   * Records that all fences are set and enforced.
   * @returns false, without a change, when `run` has ended and fences may be lost
   */
  completeFences(run: string): Promise<boolean>;
}

/** Counts of removed data that fences should have refused. */
export interface Enforced {
  /** Identities removed from the graph. */
  readonly links: number;
  readonly consents: number;
}

/** A run lasts from one start or promotion of Redis to the next. */
export interface FenceStatus {
  readonly run: string;
  /** False until all fences were set in this run. */
  readonly isComplete: boolean;
}

/** A `userId` without a type means the id under every kind of user id. */
export const USER_KINDS: readonly IdentityKind[] = [...IDENTITY_TYPES, 'untyped'];

/** A record for `audience.erasures.v1`. */
export interface ErasureRequestToPublish {
  readonly key: Buffer;
  /** Framed with its schema id. */
  readonly value: Buffer;
  readonly headers: { readonly traceparent: string };
}

export interface RequestErasureParts {
  people: Pick<People, 'readEpoch'> & {
    graph: Pick<IdentityGraph, 'membersOf'>;
    guards: Pick<ErasureGuards, 'putHold' | 'confirmHold' | 'releaseHold'>;
  };
  /** Resolves when every in-sync replica has the request. @throws when the request may not be stored */
  publish: (request: ErasureRequestToPublish) => Promise<unknown>;
  /** Id of the registered request schema. @throws while the id is unknown */
  schemaId: () => number | Promise<number>;
  /** Largest clock difference between gateways, in milliseconds. */
  clockSkewMs: number;
  /** Called with faults that do not change the result. */
  onFault: (fault: unknown, message: string) => void;
}

export interface WantedErasure {
  readonly environmentId: string;
  readonly subjectKeys: readonly Buffer[];
  readonly traceId: string;
  readonly traceparent: string;
}

/** Resolves with the erasure's id (a UUID) when the request is on the topic. */
export type RequestErasure = (wanted: WantedErasure) => Promise<string>;

/** Expiry of an unconfirmed hold: three times as long as the producer tries to publish the request. */
const HOLD_LAPSE_MS = 60_000;

/**
 * Starts an erasure: sets the hold, reads the members, publishes. Under the hold, no newer link can add a stranger.
 * @throws a fault when the request may not be on the topic
 */
export function createRequestErasure(parts: RequestErasureParts): RequestErasure {
  const { people } = parts;
  const { guards } = people;
  return async (wanted) => {
    const { environmentId, subjectKeys, traceId } = wanted;
    const schemaId = await parts.schemaId();
    // Without an epoch members would be missing, and the rebuild would lose the hold.
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
      await guards.releaseHold(name).catch((cause) => parts.onFault(cause, 'hold not released; it expires'));
      throw fault;
    });
    // Members read late may include links after the cut-off. Without members the eraser uses the decisions.
    const memberKeys = performance.now() - startMs < parts.clockSkewMs ? members : [];
    const keys = { subjectKeys: [...subjectKeys], memberKeys };
    const request = { erasureId, environmentId, ...keys, cutoffAt, requestedAt, traceId };
    // After a fault the request may still be on the topic, so the hold is not released and expires.
    await parts.publish({
      key: Buffer.from(environmentId),
      value: frameRecord(schemaId, erasureRequestCodec.encode(request)),
      headers: { traceparent: wanted.traceparent },
    });
    // A failure does no harm: the eraser recreates the hold when it reads the request.
    await guards
      .confirmHold(name)
      .catch((fault) => parts.onFault(fault, 'hold not confirmed; the eraser recreates it'));
    return id;
  };
}

/** The identities linked with the subject. */
async function readMembers({ people }: RequestErasureParts, { environmentId, subjectKeys }: WantedErasure) {
  const components = await Promise.all(subjectKeys.map((key) => people.graph.membersOf(environmentId, key)));
  const members = new Map(components.flat().map(({ key }) => [key.toString('hex'), key]));
  for (const key of subjectKeys) members.delete(key.toString('hex'));
  return [...members.values()];
}
