import { randomUUID } from 'node:crypto';
import type { MintRequestRecord } from '@playline/contracts';
import { type ErrorDetails, PublicError } from '@playline/errors';
import { countTokens, digestOf, type MintAsset, type MintCollection, type MintScope } from './asset.ts';
import type { ClaimOutcome, GrantedClaim, MintClaims, UnknownClaim, WantedClaim } from './claims.ts';
import { toRequestedState } from './states.ts';

/** Quota of a project, a token bucket: `burst` units at once, `perSecond` in the long run. */
export interface QuotaPolicy {
  readonly kind: 'mint' | 'refresh';
  readonly perSecond: number;
  readonly burst: number;
}

/** State of a project's quota after a call. */
export interface QuotaStatus {
  /** When false, nothing was taken. */
  readonly isAllowed: boolean;
  readonly remaining: number;
  /** Milliseconds until the bucket is full. */
  readonly fullInMs: number;
  /** Whole seconds until the units that were asked for are available; 0 when they were. */
  readonly retryAfterS: number;
}

/** Quotas of projects, shared by all processes. */
export interface Quotas {
  /** Takes all units or none, in one step; a negative number gives units back. */
  take(projectId: string, policy: QuotaPolicy, units: number): Promise<QuotaStatus>;
}

const ROUNDING = 1e-6;

/**
 * @param backlogMs until the bucket is full, after the units were taken
 * @param lackMs until the units that were asked for are available; 0 when they were
 */
export function toQuotaStatus(policy: QuotaPolicy, backlogMs: number, lackMs: number): QuotaStatus {
  const left = policy.burst - (backlogMs / 1000) * policy.perSecond;
  return {
    isAllowed: lackMs === 0,
    remaining: Math.max(0, Math.floor(left + ROUNDING)),
    fullInMs: backlogMs,
    retryAfterS: lackMs === 0 ? 0 : Math.max(1, Math.ceil(lackMs / 1000 - ROUNDING)),
  };
}

/** The four values of a quota in answers, as texts. */
export interface QuotaTexts {
  readonly limit: string;
  /** ISO 8601 time when the bucket is full. */
  readonly reset: string;
  readonly remaining: string;
  readonly retryAfter: string;
}

export function toQuotaTexts(policy: QuotaPolicy, standing: QuotaStatus, nowAtMs: number): QuotaTexts {
  return {
    limit: String(policy.burst),
    reset: new Date(nowAtMs + standing.fullInMs).toISOString(),
    remaining: String(standing.remaining),
    retryAfter: String(standing.retryAfterS),
  };
}

/** A request to mint assets of one collection. */
export interface MintOrder {
  readonly collection: MintCollection;
  readonly projectId: string;
  readonly environmentId: string;
  /**
   * Address of the oldest live signing key: `0x` and 40 lower-case hexadecimal digits. Called only after the first
   * check for conflicts, which are reported even without a key. @throws the error for the caller when there is no key
   */
  readonly requireSigner: () => Promise<string>;
  readonly traceId: string;
  readonly assets: readonly MintAsset[];
}

export interface AcceptMintsParts {
  readonly claims: MintClaims;
  readonly quotas: Quotas;
  readonly policy: QuotaPolicy;
  /** Resolves when every in-sync replica has all of them. @throws when they were not stored, or when that is unknown */
  readonly publish: (records: readonly MintRequestRecord[]) => Promise<void>;
  /** Must be longer than a producer retries. Default: `CLAIM_LAPSE_MS`. */
  readonly lapseMs?: number;
  /**
   * True when all requests that the log may contain of claims older than `lapseMs` have been applied to the claims.
   * @throws when that is unknown
   */
  readonly isLogApplied: () => Promise<boolean>;
}

/**
 * Accepts all assets of an order or none. Resolves when their requests are on the log and can be found by their ids.
 */
export type AcceptMints = (order: MintOrder) => Promise<QuotaStatus>;

/** The quota of the project is too small; nothing was taken. */
export class QuotaSpent extends PublicError {
  readonly quota: QuotaStatus;

  constructor(standing: QuotaStatus, refusal: { readonly message?: string; readonly details?: ErrorDetails } = {}) {
    super('TOO_MANY_REQUESTS_ERROR', { ...refusal, retryAfterS: standing.retryAfterS });
    this.quota = standing;
  }
}

/** When to try again, in seconds: pending assets end by blocks and by operators, not by the clock. */
const PENDING_RETRY_S = 60;
const MS_PER_S = 1000;

const LIMIT_MESSAGES = {
  pending_assets:
    'The environment or its project has too many pending assets. Wait until earlier ones are minted or have failed.',
  failed_assets: 'Too many assets of the project have failed. Correct what makes them fail, and try again later.',
};

/** The assets of the project have reached one of the limits in claims.ts. Carries the quota as it is. */
export class TooManyAssets extends QuotaSpent {
  readonly limit: keyof typeof LIMIT_MESSAGES;

  constructor(standing: QuotaStatus, limit: keyof typeof LIMIT_MESSAGES, retryAfterS: number) {
    super({ ...standing, retryAfterS }, { message: LIMIT_MESSAGES[limit], details: { limit } });
    this.limit = limit;
  }
}

/**
 * Age after which an unconfirmed claim may lapse. Three times as long as the producer retries, so its request cannot
 * reach the log any more. The log must also have been read: age alone frees nothing.
 */
export const CLAIM_LAPSE_MS = 60_000;

/**
 * Accepts an order in the order that gives its guarantee: conflicts, quota, claims, log, confirmation. Conflicts cost
 * nothing. A claim whose request may or may not be on the log stays, so the same order sent again takes it over and no
 * other order can.
 * @throws PublicError CONFLICT_ERROR with every reference id that is taken, TooManyAssets,
 * QuotaSpent; another fault when a step failed or its outcome is unknown: the same order may then be sent again
 */
export function createAcceptMints(parts: AcceptMintsParts): AcceptMints {
  const { claims, quotas, policy } = parts;
  const settle = createSettle(parts);
  return async (order) => {
    const twice = findTwice(order.assets);
    const wantedBy = (signer: string) => order.assets.map((asset) => toWanted(asset, signer));
    const { projectId, environmentId } = order;
    const scope = { ...order.collection, projectId, environmentId };
    assertFree(await settle(scope, wantedBy(NO_SIGNER), true), twice);
    const wanted = wantedBy(await order.requireSigner());
    const units = countTokens(order.assets);
    const standing = await quotas.take(order.projectId, policy, units);
    if (!standing.isAllowed) throw new QuotaSpent(standing);
    try {
      const outcome = await settle(scope, wanted, false);
      if (outcome.kind === 'full') throw new TooManyAssets(standing, 'pending_assets', PENDING_RETRY_S);
      if (outcome.kind === 'failing')
        throw new TooManyAssets(standing, 'failed_assets', Math.ceil(outcome.waitMs / MS_PER_S));
      await send(parts, order, assertFree(outcome, twice));
      return standing;
    } catch (fault) {
      // Give the quota back, because the order is not accepted. If this fails, the bucket refills with time anyway.
      const left = await quotas.take(order.projectId, policy, -units).catch(() => standing);
      throw fault instanceof TooManyAssets ? new TooManyAssets(left, fault.limit, fault.quota.retryAfterS) : fault;
    }
  };

  async function send({ publish }: AcceptMintsParts, order: MintOrder, placed: readonly GrantedClaim[]): Promise<void> {
    const records = order.assets.map((asset, at) => toRecord(order, asset, placed[at]!));
    await publish(records);
    const scope = { ...order.collection, projectId: order.projectId };
    const others = await claims.confirm(scope, records.map(toRequestedState));
    // Claims were lost and another request came first. The minter mints that one and skips this one.
    if (others.length > 0) throw new Error(`another attempt stands for ${others.length} of the reference ids`);
  }
}

/**
 * Claims. Claims of other assets that are in the way lapse first if their requests turn out not to be on the log; if the
 * limit of pending assets is reached, so do all such claims of the project.
 */
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
          throw new Error('it is not known yet whether another asset of a reference id was accepted');
        await claims.lapse(scope, claim);
      }
    } else return outcome;
    const again = await claims.claim(scope, wanted, { isDry });
    if (again.kind === 'unknown') throw new Error('other requests are claiming the same reference ids');
    return again;
  };
}

/** Placeholder for the signer when claims are only looked up. */
const NO_SIGNER = `0x${'0'.repeat(40)}`;

function toWanted(asset: MintAsset, signer: string): WantedClaim {
  const attemptId = randomUUID().replaceAll('-', '');
  return { referenceId: asset.referenceId, attemptId, signer, digest: digestOf(asset) };
}

/** Reference ids that occur more than once in the order. */
function findTwice(assets: readonly MintAsset[]): readonly string[] {
  const seen = new Set<string>();
  return assets.flatMap(({ referenceId }) => {
    if (seen.has(referenceId)) return [referenceId];
    seen.add(referenceId);
    return [];
  });
}

/** @throws PublicError CONFLICT_ERROR with every id that conflicts, each once, in the order of the request */
function assertFree(outcome: Exclude<ClaimOutcome, { kind: 'unknown' }>, twice: readonly string[]) {
  const taken = outcome.kind === 'taken' ? outcome.referenceIds : [];
  const values = [...new Set([...taken, ...twice])];
  if (values.length > 0) throw conflictOf(values);
  return outcome.kind === 'claimed' ? outcome.claims : [];
}

function conflictOf(values: readonly string[]): PublicError {
  const details: ErrorDetails = { id: 'reference_id', values };
  const message = 'Reference ids are taken: their assets are pending or minted, or the request has them twice.';
  return new PublicError('CONFLICT_ERROR', { message, details });
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
