import { randomUUID } from 'node:crypto';
import type { MintRequestRecord } from '@playline/contracts';
import { type ErrorDetails, PublicError } from '@playline/errors';
import { countTokens, digestOf, type MintAsset, type MintCollection } from './asset.ts';
import type { ClaimOutcome, MintClaims, PlacedClaim, UnknownClaim, WantedClaim } from './claims.ts';
import type { QuotaPolicy, QuotaStanding, Quotas } from './quota.ts';
import { toRequestedState } from './states.ts';

/** Who asks, and what the assets are of. */
export interface MintOrder {
  readonly collection: MintCollection;
  readonly projectId: string;
  readonly environmentId: string;
  /**
   * `0x` and 40 lower-case hexadecimal digits: of the oldest live key that signs. Asked for behind the first look at
   * conflicts, which are told whoever signs. @throws what the caller is told when there is none
   */
  readonly requireSigner: () => Promise<string>;
  readonly traceId: string;
  readonly assets: readonly MintAsset[];
}

export interface AcceptMintsParts {
  readonly claims: MintClaims;
  readonly quotas: Quotas;
  readonly policy: QuotaPolicy;
  /** Resolves when every in-sync replica has all of them. @throws when they do not stand, or nobody knows */
  readonly publish: (records: readonly MintRequestRecord[]) => Promise<void>;
  /** Longer than a producer tries; `CLAIM_LAPSE_MS` unless it is said. */
  readonly lapseMs?: number;
  /**
   * True when everything that the log of requests of a signer may hold now has been brought into the claims.
   * @throws when nobody can tell
   */
  readonly isLogKnown: (signer: { chain: string; signer: string }) => Promise<boolean>;
}

/** Accepts all assets of an order or none; resolves when their requests are on the log, and are found by their ids. */
export type AcceptMints = (order: MintOrder) => Promise<QuotaStanding>;

/** The quota of a project does not suffice; nothing was taken. */
export class QuotaSpent extends PublicError {
  readonly standing: QuotaStanding;

  constructor(standing: QuotaStanding) {
    super('TOO_MANY_REQUESTS_ERROR', { retryAfterS: standing.retryAfterS });
    this.standing = standing;
  }
}

/**
 * Behind it an unconfirmed claim may lapse. Three times as long as the producer tries: no request can come to stand on the
 * log behind it. Time alone frees nothing: what the log holds must have been read as well.
 */
export const CLAIM_LAPSE_MS = 60_000;

/**
 * How an order is accepted: conflicts, quota, claims, log, confirmation. The order is the guarantee. Conflicts cost nothing;
 * what is claimed and not known to be on the log stays claimed, so that the same order sent again takes it over and no
 * other one takes its place.
 * @throws PublicError CONFLICT_ERROR with every reference id that is taken, QuotaSpent; any other fault when something could
 *   not be done or told: the same order may be sent again
 */
export function createAcceptMints(parts: AcceptMintsParts): AcceptMints {
  const { claims, quotas, policy } = parts;
  const settle = createSettle(parts);
  return async (order) => {
    const twice = findTwice(order.assets);
    const wantedBy = (signer: string) => order.assets.map((asset) => toWanted(asset, signer));
    assertFree(await settle(order.collection, wantedBy(NOBODY), true), twice);
    const wanted = wantedBy(await order.requireSigner());
    const units = countTokens(order.assets);
    const standing = await quotas.take(order.projectId, policy, units);
    if (!standing.isAllowed) throw new QuotaSpent(standing);
    try {
      const outcome = await settle(order.collection, wanted, false);
      await send(parts, order, assertFree(outcome, twice));
      return standing;
    } catch (fault) {
      // Nobody pays for what was not accepted. What cannot be given back comes back with time.
      await quotas.take(order.projectId, policy, -units).catch(() => {});
      throw fault;
    }
  };

  async function send({ publish }: AcceptMintsParts, order: MintOrder, placed: readonly PlacedClaim[]): Promise<void> {
    const records = order.assets.map((asset, at) => toRecord(order, asset, placed[at]!));
    await publish(records);
    const others = await claims.confirm(order.collection, records.map(toRequestedState));
    // Claims were lost, and somebody else's request came first: theirs is minted, and this one passed over.
    if (others.length > 0) throw new Error(`another attempt stands for ${others.length} of the reference ids`);
  }
}

/** Claims; where claims of other assets are in the way whose fate is known by now, they lapse first. */
function createSettle({ claims, isLogKnown, lapseMs = CLAIM_LAPSE_MS }: AcceptMintsParts) {
  const hasLapsed = async ({ chain }: MintCollection, claim: UnknownClaim): Promise<boolean> =>
    claim.ageMs > lapseMs && (await isLogKnown({ chain, signer: claim.signer }));
  return async (collection: MintCollection, wanted: readonly WantedClaim[], isDry: boolean) => {
    const outcome = await claims.claim(collection, wanted, { isDry });
    if (outcome.kind !== 'unknown') return outcome;
    for (const claim of outcome.claims) {
      if (!(await hasLapsed(collection, claim)))
        throw new Error('nobody knows yet whether another asset of a reference id was accepted');
      await claims.lapse(collection, claim);
    }
    const again = await claims.claim(collection, wanted, { isDry });
    if (again.kind === 'unknown') throw new Error('reference ids are claimed by others at this moment');
    return again;
  };
}

/** Signs for what is looked for and not claimed. */
const NOBODY = `0x${'0'.repeat(40)}`;

function toWanted(asset: MintAsset, signer: string): WantedClaim {
  const attemptId = randomUUID().replaceAll('-', '');
  return { referenceId: asset.referenceId, attemptId, signer, digest: digestOf(asset) };
}

/** Reference ids that the order itself has more than once. */
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

function toRecord(order: MintOrder, asset: MintAsset, claim: PlacedClaim): MintRequestRecord {
  const { collection, projectId, environmentId, traceId } = order;
  return {
    chain: collection.chain,
    contractAddress: bytesOf(collection.contractAddress),
    referenceId: asset.referenceId,
    attemptId: bytesOf(claim.attemptId),
    signer: bytesOf(claim.signer),
    ...{ projectId, environmentId, traceId },
    ownerAddress: bytesOf(asset.ownerAddress),
    tokenId: asset.tokenId,
    amount: asset.amount,
    metadata: asset.metadata,
    requestedAt: claim.requestedAt,
  };
}
