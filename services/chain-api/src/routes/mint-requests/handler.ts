import { MINT_STATUSES, type MintStatus } from '@playline/contracts';
import { PublicError } from '@playline/errors';
import { parseQuery, settleWithin } from '@playline/http';
import {
  type AcceptMints,
  isOwnedBy,
  isReferenceId,
  MINT_BODY_BYTES_MAX,
  type MintClaims,
  type MintCollection,
  type MintCursors,
  type MintPageQuery,
  type MintReader,
  type MintScope,
  type MintState,
  parseMintBody,
  type QuotaPolicy,
  type Quotas,
  START_GAP,
  toMintGap,
  toMintRequestJson,
  toQuotaTexts,
} from '@playline/mints';
import type { Collections } from '../../minting/collections.ts';
import { addQuotaHeaders, toQuotaBody, toQuotaHeaders } from '../../minting/quota-headers.ts';
import type { WithBody } from '../../minting/read-request-body.ts';
import { createParameterError, createParameters, PAGE_SIZE, PAGE_SIZE_TYPE, type ParamType } from '../../parameters.ts';
import { CACHE_HEADERS } from '../chain-route.ts';
import type { CollectionOperation } from '../collection-route.ts';

const PATH = '/nfts/mint-requests';

export interface MintParts {
  readonly collections: Pick<Collections, 'requireSigner'>;
  readonly acceptMints: AcceptMints;
  readonly policy: QuotaPolicy;
  readonly quotas: Quotas;
  readonly withBody: WithBody;
  readonly deadlineMs: number;
}

/** POST mint-requests. Accepts all assets or none. */
export function createMint(parts: MintParts): CollectionOperation {
  const { collections, acceptMints, policy, quotas, withBody, deadlineMs } = parts;
  return {
    method: 'POST',
    path: PATH,
    policy,
    handle: async ({ exchange, collection, record, reauthorise }) => {
      const { projectId, environmentId } = record;
      const call = { exchange, projectId, bytesMax: MINT_BODY_BYTES_MAX };
      const status = await withBody(call, async (body) => {
        await reauthorise();
        const assets = parseMintBody(body);
        const requireSigner = () => collections.requireSigner(environmentId);
        const mint = { collection, projectId, environmentId, requireSigner, assets, traceId: exchange.traceId };
        // `acceptMints` continues after the deadline, because requests that reach the log later must be confirmed.
        return settleWithin(deadlineMs, acceptMints(mint));
      }).catch(async (fault: unknown) => {
        await addQuotaHeaders(exchange, { quotas, policy, projectId }, fault);
        throw fault;
      });
      const texts = toQuotaTexts(policy, status, Date.now());
      exchange.answer(202, JSON.stringify(toQuotaBody('mint', texts)), toQuotaHeaders('mint', texts, false));
    },
  };
}

export interface ListMintRequestsParts {
  readonly reader: Pick<MintReader, 'readPage'>;
  readonly cursors: MintCursors;
  readonly deadlineMs: number;
  /** Age at which a request is certain to be in the tables. */
  readonly settleMs: number;
}

const STATUS: ParamType<MintStatus> = {
  expected: `one of ${MINT_STATUSES.join(', ')}`,
  parse: (text) => MINT_STATUSES.find((status) => status === text) ?? null,
};

/** GET mint-requests, read from the tables. */
export function createListMintRequests(parts: ListMintRequestsParts): CollectionOperation {
  const { reader, cursors, deadlineMs, settleMs } = parts;
  return {
    method: 'GET',
    path: PATH,
    handle: async ({ exchange, chain, collection, record }) => {
      const requested = parseListQuery(exchange.request.url ?? '', collection, cursors);
      const receivedAtMs = Date.now();
      // Hides requests from a project that owned the collection earlier.
      const query: MintPageQuery = { ...requested, owner: record, horizon: receivedAtMs - settleMs };
      const { states, previous, next } = await settleWithin(deadlineMs, reader.readPage(query));
      const scope = { collection, status: query.status };
      const page = {
        previous_cursor: cursors.encode({ direction: 'previous', gap: previous }, scope),
        next_cursor: cursors.encode({ direction: 'next', gap: next }, scope),
      };
      const result = states.map((state) => toMintRequestJson(state, chain));
      exchange.answer(200, JSON.stringify({ result, page }), CACHE_HEADERS);
    },
  };
}

/** @throws PublicError VALIDATION_ERROR that lists all invalid parameters */
function parseListQuery(
  target: string,
  collection: MintCollection,
  cursors: MintCursors,
): Omit<MintPageQuery, 'owner' | 'horizon'> {
  const parameters = createParameters(parseQuery(target));
  const status = parameters.read('status', STATUS);
  const isScopeValid = parameters.errors.length === 0;
  const limit = parameters.read('page_size', PAGE_SIZE_TYPE) ?? PAGE_SIZE;
  const cursor = {
    expected: 'a cursor from an earlier page for this collection with the same status',
    parse: (text: string) => cursors.decode(text, { collection, status }),
  };
  // A cursor can be checked only against a valid status.
  const position = isScopeValid ? parameters.read('page_cursor', cursor) : null;
  if (parameters.errors.length > 0) throw createParameterError(parameters.errors);
  return { collection, status, limit, ...(position ?? { gap: START_GAP, direction: 'next' }) };
}

export interface GetMintRequestParts {
  readonly claims: Pick<MintClaims, 'read'>;
  readonly reader: Pick<MintReader, 'readOne'>;
  readonly cursors: MintCursors;
  readonly deadlineMs: number;
}

/** GET mint-requests/{reference_id}. Reads the claim first, because the tables lag behind. */
export function createGetMintRequest(parts: GetMintRequestParts): CollectionOperation {
  const { claims, reader, cursors, deadlineMs } = parts;
  const find = async (scope: MintScope, referenceId: string): Promise<MintState | null> => {
    const found = await claims.read(scope, referenceId);
    if (found.state !== null) return found.state;
    const stored = await reader.readOne(scope, referenceId);
    if (stored === null && !found.isComplete)
      throw new Error('The state may be missing until the activity writer has read the log again.');
    return stored;
  };
  return {
    method: 'GET',
    path: `${PATH}/:reference_id`,
    handle: async ({ exchange, chain, collection, record, params }) => {
      const referenceId = params.reference_id ?? '';
      const mintScope = { ...collection, projectId: record.projectId };
      const state = isReferenceId(referenceId) ? await settleWithin(deadlineMs, find(mintScope, referenceId)) : null;
      // Hides requests from a project that owned the collection earlier.
      if (state === null || !isOwnedBy(state, record))
        throw new PublicError('RESOURCE_NOT_FOUND', { message: 'The collection has no such mint request.' });
      const scope = { collection, status: null };
      const page = {
        previous_cursor: cursors.encode({ direction: 'previous', gap: toMintGap(state, 'before') }, scope),
        next_cursor: cursors.encode({ direction: 'next', gap: toMintGap(state, 'after') }, scope),
      };
      const body = JSON.stringify({ result: [toMintRequestJson(state, chain)], page });
      exchange.answer(200, body, CACHE_HEADERS);
    },
  };
}
