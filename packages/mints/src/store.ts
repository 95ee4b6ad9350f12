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

export type MintPosition = Pick<MintState, 'requestedAt' | 'attemptId'>;

/** A gap before or after a position. A request need not exist at the position. */
export interface MintGap extends MintPosition {
  readonly side: GapSide;
}

/** Stored for each request, because a collection can move to another project. */
export type MintOwner = Pick<MintState, 'projectId' | 'environmentId'>;

export interface MintPageQuery {
  readonly collection: MintCollection;
  /** null for all owners, which only operators can query. */
  readonly owner: MintOwner | null;
  /** Epoch milliseconds. Later requests are omitted, because earlier requests may not be stored. null for no limit. */
  readonly horizon: number | null;
  /** null for any status. */
  readonly status: MintStatus | null;
  readonly gap: MintGap;
  readonly direction: Direction;
  readonly limit: number;
}

export interface MintPage {
  /** In ascending order. */
  readonly states: readonly MintState[];
  readonly previous: MintGap;
  readonly next: MintGap;
}

/** Reads the tables, which lag seconds behind the log. */
export interface MintReader {
  readPage(query: MintPageQuery): Promise<MintPage>;
  /** Returns the current attempt. */
  readOne(scope: MintScope, referenceId: string): Promise<MintState | null>;
  /** Returns null if the metadata is not stored yet. */
  readMetadata(
    state: Pick<MintState, 'chain' | 'contractAddress' | 'requestedAt' | 'attemptId'>,
  ): Promise<Pick<MintAsset, 'metadata'> | null>;
  ready(): Promise<boolean>;
}

export const START_GAP: MintGap = { side: 'before', requestedAt: 0, attemptId: '0'.repeat(32) };

export const toMintGap = ({ requestedAt, attemptId }: MintPosition, side: MintGap['side']): MintGap => ({
  side,
  requestedAt,
  attemptId,
});

export const isOwnedBy = (state: MintOwner, { projectId, environmentId }: MintOwner): boolean =>
  state.projectId === projectId && state.environmentId === environmentId;

/** Compares positions in the order that every store uses. */
export function comparePositions(a: MintPosition, b: MintPosition): number {
  if (a.requestedAt !== b.requestedAt) return a.requestedAt - b.requestedAt;
  return a.attemptId < b.attemptId ? -1 : a.attemptId > b.attemptId ? 1 : 0;
}

export function isBeyond(position: MintPosition, gap: MintGap, direction: Direction): boolean {
  return isBeyondGap(comparePositions(position, gap), gap.side, direction);
}

export function toMintPage(states: readonly MintState[], gap: MintGap): MintPage {
  const [first, last] = [states[0], states.at(-1)];
  return {
    states,
    previous: first === undefined ? gap : toMintGap(first, 'before'),
    next: last === undefined ? gap : toMintGap(last, 'after'),
  };
}

export interface MetadataRow
  extends Pick<ChainMetadataRecord, 'chain' | 'kind' | 'subject' | 'projectId' | 'environmentId'> {
  readonly contractAddress: string;
  /** A JSON object as a string. */
  readonly metadata: string;
  readonly requestedAt: number;
  readonly traceId: string;
  /** In epoch microseconds, increasing within a partition. */
  readonly updatedAt: number;
  readonly partition: number;
  readonly offset: number;
  readonly loggedAtMs: number;
}

export interface MintRow extends MintState {
  /** A JSON object as a string, or null if the row is a state. */
  readonly metadata: string | null;
  readonly updatedAt: number;
  readonly partition: number;
  readonly offset: number;
  readonly loggedAtMs: number;
}

export type MintTable = 'mint_requests' | 'mint_metadata' | 'collections' | 'nft_metadata' | 'metadata_stacks';

export interface MintInsert {
  readonly table: MintTable;
  readonly rows: readonly (MintRow | MetadataRow)[];
  /** Deduplication token: rows are stored once per token. */
  readonly token: string;
  readonly signal: AbortSignal;
}

export interface MintWriter {
  insert(block: MintInsert): Promise<void>;
  ready(): Promise<boolean>;
}

export const METADATA_TABLES: Readonly<Record<ChainMetadataRecord['kind'], MintTable>> = {
  collection: 'collections',
  token: 'nft_metadata',
  stack: 'metadata_stacks',
};

/** The query for which a cursor is valid. */
export interface MintCursorScope {
  readonly collection: MintCollection;
  readonly status: MintStatus | null;
}

export type MintCursorPosition = Pick<MintPageQuery, 'gap' | 'direction'>;

export interface MintCursors {
  encode(position: MintCursorPosition, scope: MintCursorScope): string;
  /** Returns null for a cursor that was not signed with these keys, or belongs to another query. */
  decode(text: string, scope: MintCursorScope): MintCursorPosition | null;
}

/** @throws RangeError for unusable keys */
export function createMintCursors({ keys }: { keys: readonly CursorKey[] }): MintCursors {
  const purpose = 'mint-requests';
  const cursors = createSignedCursors({ keys, purpose, timeMax: Number.MAX_SAFE_INTEGER, toScopeValues: toValues });
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

const toValues = ({ collection, status }: MintCursorScope) => [collection.chain, collection.contractAddress, status];
