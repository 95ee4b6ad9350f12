import { z } from 'zod';
import { toWords } from './api.ts';
import { referencePrefix } from './assets.ts';
import type { CollectionKind } from './book.ts';
import { type MintStage, mintsOf } from './stage.ts';

const requestSchema = z.strictObject({
  chain: z.strictObject({ id: z.string(), name: z.string() }),
  collection_address: z.string(),
  reference_id: z.string(),
  owner_address: z.string(),
  status: z.enum(['pending', 'succeeded', 'failed']),
  token_id: z.string().nullable(),
  amount: z.string().nullable(),
  activity_id: z.string().nullable(),
  transaction_hash: z.string().nullable(),
  error: z.strictObject({ message: z.string() }).nullable(),
  created_at: z.string(),
  updated_at: z.string(),
});
const pageSchema = z.strictObject({
  result: z.array(requestSchema),
  page: z.strictObject({ previous_cursor: z.string().min(1), next_cursor: z.string().min(1) }),
});

/** A mint request as the interface shows it. */
export type ShownMint = z.infer<typeof requestSchema>;
export type MintListPage = z.infer<typeof pageSchema>;
export type MintStatusName = ShownMint['status'];
export const STATUSES: readonly MintStatusName[] = ['pending', 'succeeded', 'failed'];

export interface ListWalk {
  readonly collection: CollectionKind;
  readonly status?: MintStatusName;
  readonly pageSize: number;
  /** Null: from the beginning. */
  readonly from: string | null;
  readonly isBackwards?: boolean;
  /** Failed requests may be accepted again meanwhile, and then come once more on later pages, as another attempt. */
  readonly mayComeAgain?: boolean;
}

/** The result of a walk. */
export interface WalkedList {
  /** Requests of the run only, in the order in which they came. */
  readonly own: readonly ShownMint[];
  /** `previous_cursor` of its last page. */
  readonly end: string;
}

/** Reads one page. @returns null for an invalid answer, which is counted as a difference */
export async function readMintPage(
  stage: MintStage,
  collection: CollectionKind,
  query: Readonly<Record<string, string>>,
): Promise<MintListPage | null> {
  const path = `${mintsOf(stage, collection)}?${new URLSearchParams(query)}`;
  const answer = await stage.api.call({ path });
  const parsed = answer.status === 200 ? pageSchema.safeParse(answer.json) : null;
  if (parsed?.success === true) return parsed.data;
  const why = parsed === null ? toWords(answer) : `is no page: ${z.prettifyError(parsed.error)}`;
  stage.differences.add('answer', `a page of ${collection} ${JSON.stringify(query)} ${why}`);
  return null;
}

/** One request by its reference id, with the cursors on both sides of it; null for another answer. */
export async function readMint(
  stage: MintStage,
  collection: CollectionKind,
  referenceId: string,
): Promise<MintListPage | null> {
  const answer = await stage.api.call({ path: `${mintsOf(stage, collection)}/${encodeURIComponent(referenceId)}` });
  const parsed = answer.status === 200 ? pageSchema.safeParse(answer.json) : null;
  if (parsed?.success === true && parsed.data.result[0]?.reference_id === referenceId) return parsed.data;
  stage.differences.add('answer', `GET of ${referenceId} ${toWords(answer)}`);
  return null;
}

/** Reads pages to the end and checks their order: each reference id once, by the time of acceptance. */
export async function walkList(stage: MintStage, walk: ListWalk): Promise<WalkedList> {
  const { collection, status, pageSize, from, isBackwards = false } = walk;
  const prefix = referencePrefix(stage.run);
  const own: ShownMint[] = [];
  const judge = createOrderOfList(stage, walk);
  let cursor = from;
  stage.deeds.lists++;
  for (let emptyPages = 0; ; ) {
    const query = {
      page_size: String(pageSize),
      ...(status === undefined ? {} : { status }),
      ...(cursor === null ? {} : { page_cursor: cursor }),
    };
    const page = await readMintPage(stage, collection, query);
    if (page === null) return { own, end: cursor ?? '' };
    const { result } = page;
    for (const request of isBackwards ? result.toReversed() : result) {
      judge(request);
      if (request.reference_id.startsWith(prefix)) own.push(request);
    }
    stage.deeds.listed += result.length;
    const next = isBackwards ? page.page.previous_cursor : page.page.next_cursor;
    // An empty page may come before others: earlier attempts that were replaced by later ones are skipped.
    emptyPages = result.length === 0 ? emptyPages + 1 : 0;
    if (result.length === 0 && (next === cursor || emptyPages > 1)) return { own, end: page.page.previous_cursor };
    cursor = next;
  }
}

function createOrderOfList({ differences }: MintStage, walk: ListWalk): (request: ShownMint) => void {
  const name = `${walk.collection}${walk.status === undefined ? '' : ` ${walk.status}`}${walk.isBackwards ? ' backwards' : ''}`;
  const seen = new Map<string, MintStatusName>();
  let before: string | null = null;
  return ({ reference_id, status, created_at }) => {
    const isAgain = walk.mayComeAgain === true && seen.get(reference_id) === 'failed';
    if (seen.has(reference_id) && !isAgain) differences.add('list', `${name}: ${reference_id} comes twice`);
    seen.set(reference_id, status);
    if (walk.status !== undefined && status !== walk.status)
      differences.add('list', `${name}: ${reference_id} is ${status}`);
    const isInOrder = before === null || (walk.isBackwards ? created_at <= before : created_at >= before);
    if (!isInOrder) differences.add('list', `${name}: ${reference_id} of ${created_at} comes behind ${before}`);
    before = created_at;
  };
}
