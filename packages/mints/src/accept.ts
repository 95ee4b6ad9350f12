import { randomUUID } from 'node:crypto';
import type { MintRequestRecord } from '@playline/contracts';
import { type ErrorDetails, PublicError } from '@playline/errors';
import { countTokens, digestOf, type MintAsset, type MintCollection, type MintScope } from './asset.ts';
import type { ClaimOutcome, GrantedClaim, MintClaims, UnknownClaim, WantedClaim } from './claims.ts';
import { toRequestedState } from './states.ts';

/** Token bucket per project. */
export interface QuotaPolicy {
  readonly kind: 'mint' | 'refresh';
  readonly perSecond: number;
  readonly burst: number;
}

export interface QuotaStatus {
  /** When false, no units were taken. */
  readonly isAllowed: boolean;
  readonly remaining: number;
  /** Milliseconds until the bucket is full. */
  readonly fullInMs: number;
  /** Seconds until the requested units are available; 0 when they were taken. */
  readonly retryAfterS: number;
}

/** Shared by all processes. */
export interface Quotas {
  /** Takes all units or none; a negative number returns units. */
  take(projectId: string, policy: QuotaPolicy, units: number): Promise<QuotaStatus>;
}

const ROUNDING = 1e-6;

/** @param backlogMs until the bucket is full @param lackMs until the units are available */
export function toQuotaStatus(policy: QuotaPolicy, backlogMs: number, lackMs: number): QuotaStatus {
  const left = policy.burst - (backlogMs / 1000) * policy.perSecond;
  return {
    isAllowed: lackMs === 0,
    remaining: Math.max(0, Math.floor(left + ROUNDING)),
    fullInMs: backlogMs,
    retryAfterS: lackMs === 0 ? 0 : Math.max(1, Math.ceil(lackMs / 1000 - ROUNDING)),
  };
}

export interface QuotaTexts {
  readonly limit: string;
  /** ISO 8601 time when the bucket is full. */
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

export interface MintOrder {
  readonly collection: MintCollection;
  readonly projectId: string;
  readonly environmentId: string;
  /** The oldest live signing key. @throws the caller's error when there is no key */
  readonly requireSigner: () => Promise<string>;
  readonly traceId: string;
  readonly assets: readonly MintAsset[];
}

interface AcceptMintsParts {
  readonly claims: MintClaims;
  readonly quotas: Quotas;
  readonly policy: QuotaPolicy;
  /** Resolves when every in-sync replica has all records. @throws when they were not stored, or when this is unknown */
  readonly publish: (records: readonly MintRequestRecord[]) => Promise<void>;
  /** Must exceed the time for which a producer retries. */
  readonly lapseMs?: number;
  /** Whether all requests with claims older than `lapseMs` were applied to the claims. @throws when this is unknown */
  readonly isLogApplied: () => Promise<boolean>;
}

export type AcceptMints = (order: MintOrder) => Promise<QuotaStatus>;

/** The quota is exhausted; no units were taken. */
export class QuotaSpent extends PublicError {
  readonly quota: QuotaStatus;

  constructor(status: QuotaStatus, refusal: { readonly message?: string; readonly details?: ErrorDetails } = {}) {
    super('TOO_MANY_REQUESTS_ERROR', { ...refusal, retryAfterS: status.retryAfterS });
    this.quota = status;
  }
}

/** An estimate, because blocks and operators settle pending assets. */
const PENDING_RETRY_S = 60;
const MS_PER_S = 1000;

const LIMIT_MESSAGES = {
  pending_assets:
    'The environment or its project has too many pending assets. Wait until earlier assets are minted or have failed.',
  failed_assets: 'Too many assets of the project have failed. Fix the cause of the failures, and try retried later.',
};

/** The project has reached a limit from claims.ts. */
class TooManyAssets extends QuotaSpent {
  readonly limit: keyof typeof LIMIT_MESSAGES;

  constructor(status: QuotaStatus, limit: keyof typeof LIMIT_MESSAGES, retryAfterS: number) {
    super({ ...status, retryAfterS }, { message: LIMIT_MESSAGES[limit], details: { limit } });
    this.limit = limit;
  }
}

/** Age at which an unconfirmed claim may lapse: three times as long as the producer retries. */
export const CLAIM_LAPSE_MS = 60_000;

/**
 * Accepts all assets of an order or none: conflicts, quota, claims, log, confirmation. A claim with an unknown
 * outcome remains, so that a retried order takes it over. @throws PublicError CONFLICT_ERROR with all taken reference
 * ids, TooManyAssets, QuotaSpent; after any other error, retry the order
 */
export function createAcceptMints(parts: AcceptMintsParts): AcceptMints {
  const { claims, quotas, policy } = parts;
  const settle = createSettle(parts);
  return async (order) => {
    const duplicates = findDuplicates(order.assets);
    const wantedBy = (signer: string) => order.assets.map((asset) => toWanted(asset, signer));
    const { projectId, environmentId } = order;
    const scope = { ...order.collection, projectId, environmentId };
    assertFree(await settle(scope, wantedBy(NO_SIGNER), true), duplicates);
    const wanted = wantedBy(await order.requireSigner());
    const units = countTokens(order.assets);
    const status = await quotas.take(order.projectId, policy, units);
    if (!status.isAllowed) throw new QuotaSpent(status);
    try {
      const outcome = await settle(scope, wanted, false);
      if (outcome.kind === 'full') throw new TooManyAssets(status, 'pending_assets', PENDING_RETRY_S);
      if (outcome.kind === 'failing')
        throw new TooManyAssets(status, 'failed_assets', Math.ceil(outcome.waitMs / MS_PER_S));
      await send(order, assertFree(outcome, duplicates));
      return status;
    } catch (fault) {
      // If this fails, the bucket still refills over time.
      const left = await quotas.take(order.projectId, policy, -units).catch(() => status);
      throw fault instanceof TooManyAssets ? new TooManyAssets(left, fault.limit, fault.quota.retryAfterS) : fault;
    }
  };

  async function send(order: MintOrder, granted: readonly GrantedClaim[]): Promise<void> {
    const records = order.assets.map((asset, at) => toRecord(order, asset, granted[at]!));
    await parts.publish(records);
    const scope = { ...order.collection, projectId: order.projectId };
    const others = await claims.confirm(scope, records.map(toRequestedState));
    // Claims were lost and another request was first. The minter mints only the first request.
    if (others.length > 0) throw new Error(`another attempt has claimed ${others.length} of the reference ids`);
  }
}

/** Claims reference ids. Conflicting claims lapse first if their requests are not on the log. */
function createSettle({ claims, isLogApplied, lapseMs = CLAIM_LAPSE_MS }: AcceptMintsParts) {
  const hasLapsed = async (claim: UnknownClaim): Promise<boolean> => claim.ageMs > lapseMs && (await isLogApplied());
  return async (
    scope: MintScope & { readonly environmentId: string },
    wanted: readonly WantedClaim[],
    isDry: boolean,
  ) => {
    const outcome = await claims.claim(scope, wanted, { isDry });
    if (outcome.kind === 'full' && outcome.cleanedAt !== null) {
      const isKnown = await isLogApplied().catch(() => false);
      await claims.clean(scope.projectId, isKnown ? outcome.cleanedAt - lapseMs : null);
    } else if (outcome.kind === 'unknown') {
      for (const claim of outcome.claims) {
        if (!(await hasLapsed(claim)))
          throw new Error('it is not known yet whether another asset with the reference id was accepted');
        await claims.lapse(scope, claim);
      }
    } else return outcome;
    const retried = await claims.claim(scope, wanted, { isDry });
    if (retried.kind === 'unknown') throw new Error('other requests are claiming the same reference ids');
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
  const message = 'Reference ids are taken: their assets are pending or minted, or the request has them duplicates.';
  throw new PublicError('CONFLICT_ERROR', { message, details: { id: 'reference_id', values } });
}

const bytesOf = (hex: string) => Buffer.from(hex.replace(/^0x/, ''), 'hex');

function toRecord(order: MintOrder, asset: MintAsset, claim: GrantedClaim): MintRequestRecord {
  const { collection, projectId, environmentId, traceId } = order;
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
