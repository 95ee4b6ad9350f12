import { PublicError } from '@playline/errors';
import { settleWithin } from '@playline/http';
import {
  isOwnedBy,
  isReferenceId,
  type MintClaims,
  type MintCollection,
  type MintCursors,
  type MintReader,
  type MintState,
  toMintGap,
  toMintRequestJson,
} from '@playline/mints';
import { CACHE_HEADERS } from '../chain-route.ts';
import type { CollectionOperation } from './collection-route.ts';

export interface GetMintRequestParts {
  readonly claims: Pick<MintClaims, 'read'>;
  readonly reader: Pick<MintReader, 'readOne'>;
  readonly cursors: MintCursors;
  readonly deadlineMs: number;
}

/**
 * Builds GET mint-requests/{reference_id}: a list of one. What was answered with 202 is found at once; whatever was settled
 * long ago stands in the tables.
 */
export function createGetMintRequest(parts: GetMintRequestParts): CollectionOperation {
  const { claims, reader, cursors, deadlineMs } = parts;
  const find = async (collection: MintCollection, referenceId: string): Promise<MintState | null> => {
    const found = await claims.read(collection, referenceId);
    if (found.state !== null) return found.state;
    const stored = await reader.readOne(collection, referenceId);
    if (stored === null && !found.isComplete) throw new Error('states may be missing, and come back from the log');
    return stored;
  };
  return {
    method: 'GET',
    path: '/nfts/mint-requests/:reference_id',
    answer: async ({ exchange, chain, collection, record, params }) => {
      const referenceId = params.reference_id ?? '';
      const state = isReferenceId(referenceId) ? await settleWithin(deadlineMs, find(collection, referenceId)) : null;
      // Of another project, which had the collection before: to this one there is none.
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
