import { randomUUID } from 'node:crypto';
import type { MintRequestRecord } from '@playline/contracts';
import { type ErrorDetails, PublicError } from '@playline/errors';
import { countTokens, digestOf, type MintAsset, type MintCollection, type MintScope } from './asset.ts';
import type { ClaimOutcome, GrantedClaim, MintClaims, UnknownClaim, WantedClaim } from './claims.ts';
import { toRequestedState } from './states.ts';

/** Parameters of a project's token bucket. */
export interface QuotaPolicy {
  readonly kind: 'mint' | 'refresh';
  readonly perSecond: number;
  readonly burst: number;
}

export interface QuotaStatus {
  /** If false, no units were taken. */
  readonly isAllowed: boolean;
  readonly remaining: number;
  /** Milliseconds until the bucket is full again. */
  readonly fullInMs: number;
  /** Seconds until the requested units are available, or 0 if they were taken. */
  readonly retryAfterS: number;
}

/** Token buckets that all processes share. */
export interface Quotas {
  /** Takes all units or none. A negative number returns units. */
  take(projectId: string, policy: QuotaPolicy, units: number): Promise<QuotaStatus>;
}

const ROUNDING_ERROR = 1e-6;

/** @param backlogMs until the bucket is full @param lackMs until the units are available */
export function toQuotaStatus(policy: QuotaPolicy, backlogMs: number, lackMs: number): QuotaStatus {
  const remaining = policy.burst - (backlogMs / 1000) * policy.perSecond;
  return {
    isAllowed: lackMs === 0,
    remaining: Math.max(0, Math.floor(remaining + ROUNDING_ERROR)),
    fullInMs: backlogMs,
    retryAfterS: lackMs === 0 ? 0 : Math.max(1, Math.ceil(lackMs / 1000 - ROUNDING_ERROR)),
  };
}

export interface QuotaTexts {
  readonly limit: string;
  /** The ISO 8601 time at which the bucket is full again. */
  readonly reset: string;
  readonly remaining: string;
  readonly retryAfter: string;
}

export function toQuotaTexts(policy: QuotaPolicy, status: QuotaStatus, nowAtMs: number): QuotaTexts {
  return {
    limit: String(policy.burst),
    reset: new Date(nowAtMs + status.fullInMs).toISOString(),
    remaining: String(status.remaining),
    retryAfter: String(status.retryAfterS),
  };
}

export interface MintBatchRequest {
  readonly collection: MintCollection;
  readonly projectId: string;
  readonly environmentId: string;
  /** Returns the oldest active signing key. @throws an error of the caller's choice if there is no key */
  readonly requireSigner: () => Promise<string>;
  readonly traceId: string;
  readonly assets: readonly MintAsset[];
}

interface AcceptMintsParts {
  readonly claims: MintClaims;
  readonly quotas: Quotas;
  readonly policy: QuotaPolicy;
  /** Resolves when all in-sync replicas have all records. @throws if they are not stored, or if this is unknown */
  readonly publish: (records: readonly MintRequestRecord[]) => Promise<void>;
  /** Must exceed the time for which a producer retries. */
  readonly lapseMs?: number;
  /** Whether the log was read past all claims older than `lapseMs`. @throws if this is unknown */
  readonly isLogApplied: () => Promise<boolean>;
}

export type AcceptMints = (request: MintBatchRequest) => Promise<QuotaStatus>;

/** The quota is exhausted. No units were taken. */
export class QuotaExhausted extends PublicError {
  readonly quota: QuotaStatus;

  constructor(status: QuotaStatus, refusal: { readonly message?: string; readonly details?: ErrorDetails } = {}) {
    super('TOO_MANY_REQUESTS_ERROR', { ...refusal, retryAfterS: status.retryAfterS });
    this.quota = status;
  }
}

/** An estimate: pending assets are settled by new blocks or by operators. */
const PENDING_RETRY_S = 60;
const MS_PER_S = 1000;

const LIMIT_MESSAGES = {
  pending_assets:
    'The environment or its project has too many pending assets. Wait until earlier assets are minted or have failed.',
  failed_assets: 'Too many assets of the project have failed. Fix the cause of the failures, and try again later.',
};

/** The project has reached a limit on pending or failed assets. */
class TooManyAssets extends QuotaExhausted {
  readonly limit: keyof typeof LIMIT_MESSAGES;

  constructor(status: QuotaStatus, limit: keyof typeof LIMIT_MESSAGES, retryAfterS: number) {
    super({ ...status, retryAfterS }, { message: LIMIT_MESSAGES[limit], details: { limit } });
    this.limit = limit;
  }
}

/** Age at which an unconfirmed claim may lapse: three times the producer's retry period. */
export const CLAIM_LAPSE_MS = 60_000;

/**
 * Accepts all assets in a request or none. A claim with an unknown outcome remains, and a retry reuses the claim.
 * @throws PublicError CONFLICT_ERROR with all used reference ids, TooManyAssets, QuotaExhausted; retry other errors
 */
export function createAcceptMints(parts: AcceptMintsParts): AcceptMints {
  const { claims, quotas, policy } = parts;
  const settle = createSettle(parts);
  return async (request) => {
    const duplicates = findDuplicates(request.assets);
    const wantedBy = (signer: string) => request.assets.map((asset) => toWanted(asset, signer));
    const { projectId, environmentId } = request;
    const scope = { ...request.collection, projectId, environmentId };
    assertFree(await settle(scope, wantedBy(NO_SIGNER), true), duplicates);
    const wanted = wantedBy(await request.requireSigner());
    const units = countTokens(request.assets);
    const status = await quotas.take(request.projectId, policy, units);
    if (!status.isAllowed) throw new QuotaExhausted(status);
    try {
      const outcome = await settle(scope, wanted, false);
      if (outcome.kind === 'full') throw new TooManyAssets(status, 'pending_assets', PENDING_RETRY_S);
      if (outcome.kind === 'failing')
        throw new TooManyAssets(status, 'failed_assets', Math.ceil(outcome.waitMs / MS_PER_S));
      await send(request, assertFree(outcome, duplicates));
      return status;
    } catch (fault) {
      // If refunding fails, the bucket still refills over time.
      const refunded = await quotas.take(request.projectId, policy, -units).catch(() => status);
      throw fault instanceof TooManyAssets ? new TooManyAssets(refunded, fault.limit, fault.quota.retryAfterS) : fault;
    }
  };

  async function send(request: MintBatchRequest, granted: readonly GrantedClaim[]): Promise<void> {
    const records = request.assets.map((asset, at) => toRecord(request, asset, granted[at]!));
    await parts.publish(records);
    const scope = { ...request.collection, projectId: request.projectId };
    const others = await claims.confirm(scope, records.map(toRequestedState));
    // The claims were lost, and another request claimed the ids first. The minter mints only the first request.
    if (others.length > 0) throw new Error(`another request has claimed ${others.length} of the reference ids`);
  }
}

/** Claims reference ids. Conflicting claims whose requests are not on the log lapse first. */
function createSettle({ claims, isLogApplied, lapseMs = CLAIM_LAPSE_MS }: AcceptMintsParts) {
  const hasLapsed = async (claim: UnknownClaim): Promise<boolean> => claim.ageMs > lapseMs && (await isLogApplied());
  return async (
    scope: MintScope & { readonly environmentId: string },
    wanted: readonly WantedClaim[],
    isDryRun: boolean,
  ) => {
    const outcome = await claims.claim(scope, wanted, { isDryRun });
    if (outcome.kind === 'full' && outcome.cleanedAt !== null) {
      const isKnown = await isLogApplied().catch(() => false);
      await claims.clean(scope.projectId, isKnown ? outcome.cleanedAt - lapseMs : null);
    } else if (outcome.kind === 'unknown') {
      for (const claim of outcome.claims) {
        if (!(await hasLapsed(claim)))
          throw new Error('an earlier request for the reference id has an unknown outcome; retry later');
        await claims.lapse(scope, claim);
      }
    } else return outcome;
    const retried = await claims.claim(scope, wanted, { isDryRun });
    if (retried.kind === 'unknown') throw new Error('another request is claiming the same reference ids; retry later');
    return retried;
  };
}

const NO_SIGNER = `0x${'0'.repeat(40)}`;

function toWanted(asset: MintAsset, signer: string): WantedClaim {
  const attemptId = randomUUID().replaceAll('-', '');
  return { referenceId: asset.referenceId, attemptId, signer, digest: digestOf(asset) };
}

function findDuplicates(assets: readonly MintAsset[]): readonly string[] {
  const ids = assets.map(({ referenceId }) => referenceId);
  const first = new Map(ids.map((id, at) => [id, at] as const).reverse());
  return ids.filter((id, at) => first.get(id) !== at);
}

/** @throws PublicError CONFLICT_ERROR with every conflicting id */
function assertFree(outcome: Exclude<ClaimOutcome, { kind: 'unknown' }>, duplicates: readonly string[]) {
  const taken = outcome.kind === 'taken' ? outcome.referenceIds : [];
  const values = [...new Set([...taken, ...duplicates])];
  if (values.length === 0) return outcome.kind === 'claimed' ? outcome.claims : [];
  const message =
    'Some reference ids are already used by pending or minted assets, or appear more than once in the request.';
  throw new PublicError('CONFLICT_ERROR', { message, details: { id: 'reference_id', values } });
}

const bytesOf = (hex: string) => Buffer.from(hex.replace(/^0x/, ''), 'hex');

function toRecord(request: MintBatchRequest, asset: MintAsset, claim: GrantedClaim): MintRequestRecord {
  const { collection, projectId, environmentId, traceId } = request;
  return {
    chain: collection.chain,
    contractAddress: bytesOf(collection.contractAddress),
    referenceId: asset.referenceId,
    attemptId: bytesOf(claim.attemptId),
    signer: bytesOf(claim.signer),
    projectId,
    environmentId,
    traceId,
    ownerAddress: bytesOf(asset.ownerAddress),
    tokenId: asset.tokenId,
    amount: asset.amount,
    metadata: asset.metadata,
    requestedAt: claim.requestedAt,
  };
}
