import type { LoggedVersion } from '@playline/chain';
import {
  chainMetadataCodec,
  mintRequestCodec,
  mintStateCodec,
  type RecordCodec,
  type SchemaSource,
  TOPICS,
} from '@playline/contracts';
import type { MetadataRow, MintRow, MintWriter } from '@playline/mints';
import type { BlockBuilder, StoreCalls } from '@playline/stream';
import { TimedBlock, type TimedBlockOptions } from './blocks/timed-block.ts';
import { createReadRow } from './steps/read-row.ts';
import { toMetadataRow, toRequestRow, toStateRow } from './steps/to-mint-rows.ts';
import { createWriteMints } from './steps/write-mints.ts';

/** What such blocks have in common, whatever their rows are. */
interface PlainBlocks
  extends Pick<
    TimedBlockOptions<unknown>,
    'isTick' | 'readWatermark' | 'storedOffsets' | 'publishLetters' | 'onTaken'
  > {
  readonly refuse: (rows: readonly unknown[]) => Promise<readonly never[]>;
}

/** What blocks need of which nobody waits for the times: nothing refuses their rows, and no reader is let past them. */
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

/** How blocks of one topic are opened. */
export interface OpenBlocks {
  readonly topic: string;
  readonly open: (partition: number, transformVersion: number) => BlockBuilder;
}

/** The blocks of mint requests, of their states and of metadata. */
export function createMintingBlocks(
  { mints, calls, schemaOf }: MintingBlocksParts,
  plain: PlainBlocks,
): readonly OpenBlocks[] {
  const write = createWriteMints({ store: mints, calls });
  const createOpen = <T, R extends MintRow | MetadataRow>(
    codec: RecordCodec<T>,
    toRow: (record: T, version: LoggedVersion) => R,
  ): OpenBlocks['open'] => {
    const readRow = createReadRow({ codec, schemaOf, toRow });
    return (partition, version) => new TimedBlock<R>({ ...plain, readRow, write }, partition, version);
  };
  return [
    { topic: TOPICS.mintRequests.name, open: createOpen(mintRequestCodec, toRequestRow) },
    { topic: TOPICS.mintStates.name, open: createOpen(mintStateCodec, toStateRow) },
    { topic: TOPICS.chainMetadata.name, open: createOpen(chainMetadataCodec, toMetadataRow) },
  ];
}
