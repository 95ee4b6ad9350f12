import type { LoggedVersion } from '@playline/chain';
import {
  type ChainMetadataRecord,
  chainMetadataCodec,
  type MintRequestRecord,
  type MintStateRecord,
  mintRequestCodec,
  mintStateCodec,
  type RecordCodec,
  type SchemaSource,
  TOPICS,
} from '@playline/contracts';
import {
  METADATA_TABLES,
  type MetadataRow,
  type MintRow,
  type MintTable,
  type MintWriter,
  toMintState,
  toRequestedState,
} from '@playline/mints';
import type { BlockBuilder, StoreCalls } from '@playline/stream';
import { createReadRow } from './steps/read-row.ts';
import { TimedBlock, type TimedBlockOptions } from './steps/timed-block.ts';
import { createWriteFolding } from './steps/write-folding.ts';

/** The options of blocks whose times no reader waits for, whatever their rows are. */
interface PlainBlocks
  extends Pick<
    TimedBlockOptions<unknown>,
    'isTick' | 'readWatermark' | 'storedOffsets' | 'publishLetters' | 'onTaken'
  > {
  readonly refuse: (rows: readonly unknown[]) => Promise<readonly never[]>;
}

/** Options of blocks that refuse no row, read no watermark, and do not depend on which rows are stored. */
export function createPlainBlocks(publishLetters: PlainBlocks['publishLetters']): PlainBlocks {
  return {
    isTick: () => false,
    readWatermark: async () => 0,
    storedOffsets: async () => new Set(),
    refuse: async () => [],
    publishLetters,
    onTaken: () => {},
  };
}

export interface MintingBlocksParts {
  readonly mints: Pick<MintWriter, 'insert'>;
  readonly calls: StoreCalls;
  readonly schemaOf: SchemaSource;
}

/** How to open blocks of one topic. */
export interface OpenBlocks {
  readonly topic: string;
  readonly open: (partition: number) => BlockBuilder;
}

type Row = MintRow | MetadataRow;

function tablesOf(row: Row): readonly MintTable[] {
  if ('kind' in row) return [METADATA_TABLES[row.kind]];
  // Only the request has the metadata. A row without any says that none was requested.
  return row.revision === 0 ? ['mint_requests', 'mint_metadata'] : ['mint_requests'];
}

/** The blocks of mint requests, of their states and of metadata. */
export function createMintingBlocks(
  { mints, calls, schemaOf }: MintingBlocksParts,
  plain: PlainBlocks,
): readonly OpenBlocks[] {
  const write = createWriteFolding<Row, MintTable>({ tablesOf, insert: (rows) => mints.insert(rows), calls });
  const createOpen = <T, R extends Row>(
    codec: RecordCodec<T>,
    toRow: (record: T, version: LoggedVersion) => R,
  ): OpenBlocks['open'] => {
    const readRow = createReadRow({ codec, schemaOf, toRow });
    return (partition) => new TimedBlock<R>({ ...plain, readRow, write }, partition);
  };
  return [
    { topic: TOPICS.mintRequests.name, open: createOpen(mintRequestCodec, toRequestRow) },
    { topic: TOPICS.mintStates.name, open: createOpen(mintStateCodec, toStateRow) },
    { topic: TOPICS.chainMetadata.name, open: createOpen(chainMetadataCodec, toMetadataRow) },
  ];
}

/** Largest time of a column with milliseconds: the end of 2299. */
const TIME_MAX_MS = Date.UTC(2299, 11, 31);

/** @throws RangeError that names the member, without its value */
function assertTime(name: string, epochMs: number): void {
  if (!(epochMs >= 0 && epochMs <= TIME_MAX_MS)) throw new RangeError(`${name} is no time that is stored`);
}

function assertCount(name: string, count: number | null): void {
  if (count !== null && !(Number.isSafeInteger(count) && count >= 0)) throw new RangeError(`${name} is no count`);
}

/** @throws RangeError that names what is invalid */
function toRequestRow(record: MintRequestRecord, version: LoggedVersion): MintRow {
  assertTime('requestedAt', record.requestedAt);
  return { ...toRequestedState(record), metadata: record.metadata, ...version };
}

/** @throws RangeError that names what is invalid */
function toStateRow(record: MintStateRecord, version: LoggedVersion): MintRow {
  assertTime('requestedAt', record.requestedAt);
  assertTime('changedAt', record.changedAt);
  assertCount('nonce', record.nonce);
  // The request itself has revision 0.
  if (!Number.isSafeInteger(record.revision) || record.revision < 1) throw new RangeError('revision is below 1');
  return { ...toMintState(record), metadata: null, ...version };
}

/** @throws RangeError that names what is invalid */
function toMetadataRow(record: ChainMetadataRecord, version: LoggedVersion): MetadataRow {
  assertTime('requestedAt', record.requestedAt);
  const { contractAddress, ...rest } = record;
  return { ...rest, ...version, contractAddress: `0x${contractAddress.toString('hex')}` };
}
