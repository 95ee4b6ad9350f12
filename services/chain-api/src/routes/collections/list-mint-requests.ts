import { parseQuery, settleWithin } from '@playline/http';
import {
  type MintCollection,
  type MintCursors,
  type MintPageQuestion,
  type MintReader,
  START_GAP,
  toMintRequestJson,
} from '@playline/mints';
import { createParameters, invalidParameters, type Kind, PAGE_SIZE, PAGE_SIZE_KIND } from '../../parameters.ts';
import { CACHE_HEADERS } from '../chain-route.ts';
import type { CollectionOperation } from './collection-route.ts';

export interface ListMintRequestsParts {
  readonly reader: Pick<MintReader, 'readPage'>;
  readonly cursors: MintCursors;
  readonly deadlineMs: number;
  /** Milliseconds after which a request stands in the tables. */
  readonly settleMs: number;
}

type Status = NonNullable<MintPageQuestion['status']>;
const STATUSES: readonly Status[] = ['pending', 'succeeded', 'failed'];

const STATUS: Kind<Status> = {
  expected: `one of ${STATUSES.join(', ')}`,
  parse: (text) => STATUSES.find((status) => status === text) ?? null,
};

/** Builds GET mint-requests: what was asked for, in that order, as the tables have it. */
export function createListMintRequests(parts: ListMintRequestsParts): CollectionOperation {
  const { reader, cursors, deadlineMs, settleMs } = parts;
  return {
    method: 'GET',
    path: '/nfts/mint-requests',
    answer: async ({ exchange, chain, collection, record }) => {
      const asked = parseListQuery(exchange.request.url ?? '', collection, cursors);
      const askedAtMs = Date.now();
      // What was asked for by whoever had the collection before is nobody's business here.
      const question: MintPageQuestion = { ...asked, owner: record, horizon: askedAtMs - settleMs };
      const { states, previous, next } = await settleWithin(deadlineMs, reader.readPage(question));
      const scope = { collection, status: question.status };
      const page = {
        previous_cursor: cursors.encode({ direction: 'previous', gap: previous }, scope),
        next_cursor: cursors.encode({ direction: 'next', gap: next }, scope),
      };
      const result = states.map((state) => toMintRequestJson(state, chain));
      exchange.answer(200, JSON.stringify({ result, page }), CACHE_HEADERS);
    },
  };
}

/** @throws PublicError VALIDATION_ERROR with everything that is wrong */
function parseListQuery(
  target: string,
  collection: MintCollection,
  cursors: MintCursors,
): Omit<MintPageQuestion, 'owner' | 'horizon'> {
  const parameters = createParameters(parseQuery(target));
  const status = parameters.read('status', STATUS);
  const isScopeRight = parameters.faults.length === 0;
  const limit = parameters.read('page_size', PAGE_SIZE_KIND) ?? PAGE_SIZE;
  const cursor = {
    expected: 'a cursor of a page of this collection with the same status, as it was returned',
    parse: (text: string) => cursors.decode(text, { collection, status }),
  };
  // A cursor belongs to a status, so without knowing that nothing can be said of it.
  const place = isScopeRight ? parameters.read('page_cursor', cursor) : null;
  if (parameters.faults.length > 0) throw invalidParameters(parameters.faults);
  return { collection, status, limit, ...(place ?? { gap: START_GAP, direction: 'next' }) };
}
