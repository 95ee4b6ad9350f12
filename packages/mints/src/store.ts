import {
  type ChainMetadataRecord,
  type CursorKey,
  createSignedCursors,
  type Direction,
  type GapSide,
  isBeyondGap,
  type MintStatus,
} from '@playline/contracts';
import type { MintAsset, MintCollection, MintScope } from './asset.ts';
import type { MintState } from './states.ts';

/** Sort key of a request in the list of its collection. */
export type MintPosition = Pick<MintState, 'requestedAt' | 'attemptId'>;

/** A place between requests: before or after a position, which need not exist. */
export interface MintGap extends MintPosition {
  readonly side: GapSide;
}

/** Owner of a request. A collection may have belonged to another project when it was made. */
export type MintOwner = Pick<MintState, 'projectId' | 'environmentId'>;

/** A query for a page of the requests of a collection. */
export interface MintPageQuery {
  readonly collection: MintCollection;
  /** Only requests of this owner; null for all, for operators. */
  readonly owner: MintOwner | null;
  /**
   * Epoch milliseconds; later requests are left out. Null: none are. Rows are stored in the order of partitions and
   * blocks, so an earlier request may appear after a later one. A reader whose cursor is already past its place would
   * never see it.
   */
  readonly horizon: number | null;
  /** Null for all. */
  readonly status: MintStatus | null;
  /** The page begins beyond this gap. */
  readonly gap: MintGap;
  readonly direction: Direction;
  readonly limit: number;
}

export interface MintPage {
  /** In ascending order. */
  readonly states: readonly MintState[];
  /** Where the adjacent pages begin. */
  readonly previous: MintGap;
  readonly next: MintGap;
}

/** Reads requests from the tables, which are seconds behind the log. */
export interface MintReader {
  readPage(question: MintPageQuery): Promise<MintPage>;
  /** The attempt that counts for a reference id; null when the tables have none. */
  readOne(scope: MintScope, referenceId: string): Promise<MintState | null>;
  /** Metadata that was requested for an attempt. Null: the tables do not have its request yet. */
  readMetadata(
    state: Pick<MintState, 'chain' | 'contractAddress' | 'requestedAt' | 'attemptId'>,
  ): Promise<Pick<MintAsset, 'metadata'> | null>;
  ready(): Promise<boolean>;
}

/** Before every request. */
export const START_GAP: MintGap = { side: 'before', requestedAt: 0, attemptId: '0'.repeat(32) };

/** The gap right before or right after a request. */
export const toMintGap = ({ requestedAt, attemptId }: MintPosition, side: MintGap['side']): MintGap => ({
  side,
  requestedAt,
  attemptId,
});

/** Whether a request was accepted for an owner. */
export const isOwnedBy = (state: MintOwner, { projectId, environmentId }: MintOwner): boolean =>
  state.projectId === projectId && state.environmentId === environmentId;

/** Below zero when `a` comes before `b`. Every store uses this order. */
export function comparePositions(a: MintPosition, b: MintPosition): number {
  if (a.requestedAt !== b.requestedAt) return a.requestedAt - b.requestedAt;
  return a.attemptId < b.attemptId ? -1 : a.attemptId > b.attemptId ? 1 : 0;
}

/** Whether a request lies behind a gap in the direction of reading. */
export function isBeyond(position: MintPosition, gap: MintGap, direction: Direction): boolean {
  return isBeyondGap(comparePositions(position, gap), gap.side, direction);
}

/** Makes a page of the states found, which are in ascending order. */
export function toMintPage(states: readonly MintState[], gap: MintGap): MintPage {
  const [first, last] = [states[0], states.at(-1)];
  return {
    states,
    previous: first === undefined ? gap : toMintGap(first, 'before'),
    next: last === undefined ? gap : toMintGap(last, 'after'),
  };
}

/** Metadata of one subject, with its place in the log. */
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

/** A state with the place of its record in the log. */
export interface MintRow extends MintState {
  /** JSON text of an object; null for a row of a state, and when none was requested. */
  readonly metadata: string | null;
  readonly updatedAt: number;
  readonly partition: number;
  readonly offset: number;
  readonly loggedAtMs: number;
}

export type MintTable = 'mint_requests' | 'mint_metadata' | 'collections' | 'nft_metadata' | 'metadata_stacks';

/** Rows of one block for one table. */
export interface MintInsert {
  readonly table: MintTable;
  readonly rows: readonly (MintRow | MetadataRow)[];
  /** Rows are stored once per token. */
  readonly token: string;
  readonly signal: AbortSignal;
}

/** Writes to the tables. */
export interface MintWriter {
  /** @throws StoreFault */
  insert(block: MintInsert): Promise<void>;
  ready(): Promise<boolean>;
}

/** The table for each kind of metadata. */
export const METADATA_TABLES: Readonly<Record<ChainMetadataRecord['kind'], MintTable>> = {
  collection: 'collections',
  token: 'nft_metadata',
  stack: 'metadata_stacks',
};

/** The query that a cursor belongs to. It is valid for no other. */
export interface MintCursorScope {
  readonly collection: MintCollection;
  readonly status: MintStatus | null;
}

/** Where to continue, and in which direction. */
export type MintCursorPosition = Pick<MintPageQuery, 'gap' | 'direction'>;

export interface MintCursors {
  /** A text that is safe in a URL. */
  encode(place: MintCursorPosition, scope: MintCursorScope): string;
  /** Null for a text that was not signed here, was changed, or belongs to another query. Never throws. */
  decode(text: string, scope: MintCursorScope): MintCursorPosition | null;
}

/** Creates the cursors of mint requests. @throws RangeError for keys that cannot be used */
export function createMintCursors({ keys }: { keys: readonly CursorKey[] }): MintCursors {
  const purpose = 'mint-requests';
  const cursors = createSignedCursors({ keys, purpose, timeMax: Number.MAX_SAFE_INTEGER, nameOf: toName });
  return {
    encode: ({ gap, direction }, scope) => {
      const id = Buffer.from(gap.attemptId, 'hex');
      return cursors.encode({ direction, side: gap.side, time: gap.requestedAt, id }, scope);
    },
    decode: (text, scope) => {
      const read = cursors.decode(text, scope);
      if (!read.ok) return null;
      const { direction, side, time, id } = read.position;
      return { direction, gap: { side, requestedAt: time, attemptId: id.toString('hex') } };
    },
  };
}

const toName = ({ collection, status }: MintCursorScope) => [collection.chain, collection.contractAddress, status];
