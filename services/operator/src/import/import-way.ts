import { randomBytes } from 'node:crypto';
import type { ChainStore } from '@playline/chain';
import type { Producer } from '@playline/stream';
import { awaitStore } from '../await-store.ts';
import type { LogSources } from '../changed-log.ts';
import { type Imported, type ImportOptions, importLines } from './import-lines.ts';
import { openImportLog } from './import-log.ts';
import type { ImportedRow, ImportSubject } from './subjects.ts';

/** What imports work with. */
export interface ImportSources extends LogSources {
  /** @param topic full name on the broker */
  readonly openProducer: (topic: string) => Promise<Producer>;
  readonly openStore: () => Promise<ChainStore>;
}

export interface ImportWayOptions extends ImportSources {
  /** Consumer group of the activity writer. */
  readonly writerGroup: string;
  readonly onProgress: (line: string) => void;
}

/** Lines to import, and callbacks for what is done with them. */
export interface ImportJob<R, Row extends ImportedRow>
  extends Pick<ImportOptions<R, Row>, 'lines' | 'tail' | 'onRefused' | 'onProgress' | 'stop'> {
  /** Name of the chain that all lines must be about; null: any. */
  readonly chain: string | null;
}

/** Imports lines into one topic; can be used repeatedly. */
export interface ImportWay<R, Row extends ImportedRow> {
  /** What the writer has still to write, by name. Lines are compared with it and then with the tables. */
  readTail(): Promise<Map<string, Row[]>>;
  /** @throws UnreachableError when it is unknown whether the brokers have what was published */
  import(job: ImportJob<R, Row>): Promise<Imported>;
  close(): Promise<void>;
}

/** @throws UnreachableError when a store does not answer, or the schema is not registered */
export async function openImportWay<R, Row extends ImportedRow>(
  subject: ImportSubject<R, Row>,
  { openLog, openProducer, openStore, schemas, topicPrefix, writerGroup, onProgress }: ImportWayOptions,
): Promise<ImportWay<R, Row>> {
  const producer = await openProducer(topicPrefix + subject.topic.name);
  const log = await openImportLog({
    subject,
    producer,
    schemas,
    topicPrefix,
    writerGroup,
    onProgress,
    log: await openLog(),
  });
  const store = await openStore();
  const close = async () => void (await Promise.all([log.close(), store.close()]));
  try {
    await awaitStore('ClickHouse', () => store.ready());
  } catch (fault) {
    await close();
    throw fault;
  }
  return {
    readTail: log.readTail,
    import: ({ chain, ...job }) =>
      importLines({
        subject,
        ...job,
        parse: subject.createParse({ chain, traceId: randomBytes(16).toString('hex') }),
        readStanding: (rows) => subject.readStanding(store, rows),
        publish: log.publish,
      }),
    close,
  };
}
