import type { ChainMetadataRecord, MintStatus } from '@playline/contracts';
import type { MintCollection } from './asset.ts';
import type { MintState } from './states.ts';

/** Where a request stands in the list of its collection: by when it was asked for. */
export type MintPosition = Pick<MintState, 'requestedAt' | 'attemptId'>;

/** A place between requests: before or after one, which need not be there. */
export interface MintGap extends MintPosition {
  readonly side: 'before' | 'after';
}

/** For whom requests were accepted: a collection may have been another project's before. */
export type MintOwner = Pick<MintState, 'projectId' | 'environmentId'>;

/** Which page of the requests of a collection is asked for. */
export interface MintPageQuestion {
  readonly collection: MintCollection;
  /** Whose requests; null: everybody's, for operators. */
  readonly owner: MintOwner | null;
  /**
   * Requests of later than this are left out, epoch milliseconds; null: none are. Rows come to stand in the order in which
   * logs are read and blocks are stored, so one that was asked for earlier may turn up in front of one that stands already:
   * a reader who was let past it would never see it.
   */
  readonly horizon: number | null;
  /** Null: all. */
  readonly status: MintStatus | null;
  /** Beyond it lies the page. */
  readonly gap: MintGap;
  readonly direction: 'next' | 'previous';
  readonly limit: number;
}

export interface MintPage {
  /** In ascending order. */
  readonly states: readonly MintState[];
  /** Where the pages beside it begin. */
  readonly previous: MintGap;
  readonly next: MintGap;
}

/** Requests as the tables have them, seconds behind the log. */
export interface MintReader {
  readPage(question: MintPageQuestion): Promise<MintPage>;
  /** The latest attempt of a reference id; null where the tables have none. */
  readOne(collection: MintCollection, referenceId: string): Promise<MintState | null>;
  ready(): Promise<boolean>;
}

/** In front of every request. */
export const START_GAP: MintGap = { side: 'before', requestedAt: 0, attemptId: '0'.repeat(32) };

/** The gap right before or right after a request. */
export const toMintGap = ({ requestedAt, attemptId }: MintPosition, side: MintGap['side']): MintGap => ({
  ...{ side, requestedAt, attemptId },
});

/** Whether a request was accepted for an owner. */
export const isOwnedBy = (state: MintOwner, { projectId, environmentId }: MintOwner): boolean =>
  state.projectId === projectId && state.environmentId === environmentId;

/** Below zero when `a` stands before `b`. The order of every store. */
export function comparePositions(a: MintPosition, b: MintPosition): number {
  if (a.requestedAt !== b.requestedAt) return a.requestedAt - b.requestedAt;
  return a.attemptId < b.attemptId ? -1 : a.attemptId > b.attemptId ? 1 : 0;
}

/** Whether a request lies behind a gap in the direction of reading. */
export function isBeyond(position: MintPosition, gap: MintGap, direction: MintPageQuestion['direction']): boolean {
  const order = comparePositions(position, gap);
  if (order === 0) return (gap.side === 'before') === (direction === 'next');
  return order > 0 === (direction === 'next');
}

/** A page of what was found, in ascending order. */
export function toMintPage(states: readonly MintState[], gap: MintGap): MintPage {
  const [first, last] = [states[0], states.at(-1)];
  return {
    states,
    previous: first === undefined ? gap : toMintGap(first, 'before'),
    next: last === undefined ? gap : toMintGap(last, 'after'),
  };
}

/** Metadata of one subject, and where it stood in the log. */
export interface MetadataRow
  extends Pick<ChainMetadataRecord, 'chain' | 'kind' | 'subject' | 'projectId' | 'environmentId'> {
  readonly contractAddress: string;
  /** JSON text of an object. */
  readonly metadata: string;
  readonly requestedAt: number;
  readonly traceId: string;
  /** Epoch microseconds: grows with each record of a partition. */
  readonly updatedAt: number;
  readonly partition: number;
  readonly offset: number;
  /** Epoch milliseconds. */
  readonly loggedAtMs: number;
}

/** A state and where its record stood in the log. */
export interface MintRow extends MintState {
  readonly updatedAt: number;
  readonly partition: number;
  readonly offset: number;
  readonly loggedAtMs: number;
}

export type MintTable = 'mint_requests' | 'collections' | 'nft_metadata' | 'metadata_stacks';

/** Rows of one block for one table. */
export interface MintInsert {
  readonly table: MintTable;
  readonly rows: readonly (MintRow | MetadataRow)[];
  /** Rows that were sent under it once are not stored again. */
  readonly token: string;
  readonly signal: AbortSignal;
}

/** The writers' side of the tables. */
export interface MintWriter {
  /** @throws StoreFault */
  insert(block: MintInsert): Promise<void>;
  ready(): Promise<boolean>;
}

/** Where metadata of a kind is kept. */
export const METADATA_TABLES: Readonly<Record<ChainMetadataRecord['kind'], MintTable>> = {
  collection: 'collections',
  token: 'nft_metadata',
  stack: 'metadata_stacks',
};
