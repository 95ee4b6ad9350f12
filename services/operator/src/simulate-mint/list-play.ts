import { type ShownEnvelope, toWords } from './api.ts';
import type { CollectionKind } from './book.ts';
import { readMint, readMintPage, STATUSES, walkList } from './lists.ts';
import { type MintStage, mintsOf } from './stage.ts';

/** Small, so that the requests of a run fill many pages. */
const PAGE_SIZES = [3, 7, 50];
const STATUS_PAGE_SIZE = 200;
/** Pages of a walk in small pages, within the limit of calls. */
const PAGES_MAX = 25;

/** The cursor in front of the run's first request of a collection. */
export async function findFirstCursor(stage: MintStage, collection: CollectionKind): Promise<string | null> {
  const first = stage.book.entries().find(({ asset }) => asset.collection === collection);
  if (first === undefined) return null;
  const found = await readMint(stage, collection, first.asset.referenceId);
  return found?.page.previous_cursor ?? null;
}

/** Reads lists while they grow: all of the run in small pages, and those of one status. */
export async function playLists(stage: MintStage, collection: CollectionKind, from: string | null): Promise<void> {
  const { random, book, differences } = stage;
  if (from === null) return;
  const pageSize = Math.min(STATUS_PAGE_SIZE, Math.max(random.pick(PAGE_SIZES), Math.ceil(book.accepted / PAGES_MAX)));
  const { own } = await walkList(stage, { collection, pageSize, from });
  for (const { reference_id } of own)
    if (book.find(reference_id) === null)
      differences.add('uninvited', `${reference_id} is in the list of ${collection}`);
  const status = random.pick(STATUSES);
  await walkList(stage, { collection, status, pageSize: STATUS_PAGE_SIZE, from: null });
}

/** A cursor is valid for one collection and one status; elsewhere it must be refused. */
export async function playForeignCursors(stage: MintStage): Promise<void> {
  const page = await readMintPage(stage, 'erc721', { status: 'pending', page_size: '1' });
  if (page === null) return;
  const { next_cursor: page_cursor } = page.page;
  for (const [collection, query] of [
    ['erc721', { status: 'failed', page_cursor }],
    ['erc721', { page_cursor }],
    ['erc1155', { status: 'pending', page_cursor }],
  ] as const) {
    stage.deeds.probes++;
    const answer = await stage.api.call({ path: `${mintsOf(stage, collection)}?${new URLSearchParams(query)}` });
    const fields = ((answer.json ?? {}) as ShownEnvelope).details?.errors?.map(({ field }) => field);
    if (answer.status !== 400 || fields?.join() !== 'page_cursor')
      stage.differences.add('answer', `a cursor of another list: expected 400 about page_cursor, ${toWords(answer)}`);
  }
}
