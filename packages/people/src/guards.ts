/** Erasure holds and fences, and the erasure request that a gateway publishes. */
import { randomUUID } from 'node:crypto';
import { erasureRequestCodec, frameRecord, IDENTITY_TYPES, type IdentityKind } from '@playline/contracts';
import type { IdentityGraph } from './graph.ts';
import { MissingEpochFault, type People } from './people.ts';

/** Delays links of these identities that are newer than the cut-off, until the erasure has finished. */
export interface ErasureHold {
  readonly environmentId: string;
  /** 16 bytes, a UUID. */
  readonly erasureId: Buffer;
  /** Identity keys, 16 bytes each. */
  readonly keys: readonly Buffer[];
  readonly cutoffMs: number;
  /** Expiry in epoch milliseconds; null once the erasure request is on the topic. */
  readonly lapsesAtMs: number | null;
}

export type StoredHold = Omit<ErasureHold, 'environmentId' | 'keys'>;

export type HoldName = Pick<ErasureHold, 'environmentId' | 'erasureId'>;

/** Data of the identity up to the cut-off (epoch milliseconds) is deleted and refused. */
export interface Cutoff {
  readonly environmentId: string;
  readonly key: Buffer;
  readonly cutoffMs: number;
}

/**
 * Holds delay links while an erasure runs; fences permanently refuse links and consents up to the cut-off. Several
 * erasures may hold one identity; the latest cut-off applies.
 */
export interface ErasureGuards {
  /** Creates or replaces an erasure's hold. The hold is in effect when the promise resolves. */
  putHold(hold: ErasureHold): Promise<void>;
  /**
   * Removes the hold's expiry, once the request is on the topic.
   * @returns false if there is no hold, for example because the erasure has finished
   */
  confirmHold(name: HoldName): Promise<boolean>;
  /**
   * Replaces an existing hold. Does not create a hold: a paused eraser could create a hold that is never released.
   * @returns false if there is no hold
   */
  extendHold(hold: ErasureHold): Promise<boolean>;
  listHolds(environmentId: string): Promise<StoredHold[]>;
  /** Releases the hold, if any. */
  releaseHold(name: HoldName): Promise<void>;
  /** Releases expired holds, whose requests never reached the topic, and returns their number. */
  dropLapsedHolds(nowMs: number): Promise<number>;
  /**
   * For each identity, the time (epoch milliseconds) after which its person's links wait: the earliest cut-off among
   * the held members, or null. Identities of one person always have the same result.
   * @throws MissingEpochFault
   */
  heldFrom(environmentId: string, keys: readonly Buffer[]): Promise<(number | null)[]>;
  /** Sets fences, unless a later fence exists. Idempotent; does not require an epoch. */
  fence(cutoffs: readonly Cutoff[]): Promise<void>;
  /**
   * Sets fences and removes links and consents up to the cut-off. Later links of these identities are reapplied from
   * the log.
   */
  enforce(cutoffs: readonly Cutoff[]): Promise<Enforced>;
  fenceStatus(): Promise<FenceStatus>;
  /**
   * Records that all fences are set and enforced.
   * @returns false if `run` has ended, in which case fences may be lost and nothing is recorded
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
  /** Whether an eraser can restore missing fences. Without an epoch, the rebuild restores them. */
  readonly isRestorable: boolean;
  /** Whether fences of the environment may be missing and can be restored. */
  lacks(environmentId: string): boolean;
}

/** The kinds of a `userId` without a type. */
export const USER_KINDS: readonly IdentityKind[] = [...IDENTITY_TYPES, 'untyped'];

/** A record for `audience.erasures.v1`. */
export interface ErasureRecordToPublish {
  readonly key: Buffer;
  /** Avro, prefixed with the schema id. */
  readonly value: Buffer;
  readonly headers: { readonly traceparent: string };
}

export interface RequestErasureParts {
  people: Pick<People, 'readEpoch'> & {
    graph: Pick<IdentityGraph, 'membersOf'>;
    guards: Pick<ErasureGuards, 'putHold' | 'confirmHold' | 'releaseHold'>;
  };
  /** Resolves once all in-sync replicas have stored the request. @throws if the request may not have been stored */
  publish: (request: ErasureRecordToPublish) => Promise<unknown>;
  /** Id of the registered request schema. @throws if the schema is not registered yet */
  schemaId: () => number | Promise<number>;
  /** Maximum clock skew between gateways. */
  clockSkewMs: number;
  /** Called for faults that do not affect the result. */
  onFault: (fault: unknown, message: string) => void;
}

export interface ErasureInput {
  readonly environmentId: string;
  readonly subjectKeys: readonly Buffer[];
  readonly traceId: string;
  readonly traceparent: string;
}

/** Resolves with the erasure id (a UUID) once the request is on the topic. */
export type RequestErasure = (input: ErasureInput) => Promise<string>;

/** Expiry of an unconfirmed hold: three times the producer's delivery timeout. */
const HOLD_LAPSE_MS = 60_000;

/**
 * Starts an erasure: creates the hold, reads the person's members and publishes the request. The hold ensures that no
 * newer link adds another person.
 * @throws if the request may be missing from the topic
 */
export function createRequestErasure(parts: RequestErasureParts): RequestErasure {
  const { people } = parts;
  const { guards } = people;
  return async (input) => {
    const { environmentId, subjectKeys, traceId } = input;
    const schemaId = await parts.schemaId();
    // Without an epoch, members would be missing and the rebuild would lose the hold.
    if ((await people.readEpoch(environmentId)) === null) throw new MissingEpochFault();
    const id = randomUUID();
    const erasureId = Buffer.from(id.replaceAll('-', ''), 'hex');
    const requestedAt = Date.now();
    const startMs = performance.now();
    const cutoffAt = requestedAt + parts.clockSkewMs;
    const name = { environmentId, erasureId };
    await guards.putHold({ ...name, keys: subjectKeys, cutoffMs: cutoffAt, lapsesAtMs: requestedAt + HOLD_LAPSE_MS });
    const members = await readMembers(parts, input).catch(async (fault) => {
      // The request was not published.
      await guards.releaseHold(name).catch((cause) => parts.onFault(cause, 'cannot release hold; it will expire'));
      throw fault;
    });
    // A slow read may include links after the cut-off. Without members, the eraser reads the decisions instead.
    const memberKeys = performance.now() - startMs < parts.clockSkewMs ? members : [];
    const keys = { subjectKeys: [...subjectKeys], memberKeys };
    const request = { erasureId, environmentId, ...keys, cutoffAt, requestedAt, traceId };
    // If publishing fails, the request may nevertheless be on the topic, so the hold remains until it expires.
    await parts.publish({
      key: Buffer.from(environmentId),
      value: frameRecord(schemaId, erasureRequestCodec.encode(request)),
      headers: { traceparent: input.traceparent },
    });
    // The eraser recreates a lost hold when it reads the request.
    await guards
      .confirmHold(name)
      .catch((fault) => parts.onFault(fault, 'cannot confirm hold; the eraser will recreate it'));
    return id;
  };
}

/** Returns the identities linked with the subject. */
async function readMembers({ people }: RequestErasureParts, { environmentId, subjectKeys }: ErasureInput) {
  const components = await Promise.all(subjectKeys.map((key) => people.graph.membersOf(environmentId, key)));
  const members = new Map(components.flat().map(({ key }) => [key.toString('hex'), key]));
  for (const key of subjectKeys) members.delete(key.toString('hex'));
  return [...members.values()];
}
