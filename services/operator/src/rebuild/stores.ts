import type { SchemaSource } from '@playline/contracts';
import type { ErasureRecords } from '@playline/erasure';
import type { QueryRows } from '@playline/stores';
import type { LogReader } from '@playline/stream';

/** What a rebuild reads: the log and the tables. */
export interface RebuildSources {
  readonly log: LogReader;
  readonly query: QueryRows;
  readonly records: Pick<ErasureRecords, 'readFences' | 'readUnfinished' | 'readFinished'>;
  /** Returns the text of a schema. @throws UnknownSchemaFault */
  readonly schemaOf: SchemaSource;
  /** TOPIC_PREFIX */
  readonly topicPrefix: string;
  /** Consumer group of the event writer: everything that it has committed is in the tables. */
  readonly writerGroup: string;
  /** Called with findings, for people. */
  readonly onProgress: (line: string) => void;
}
