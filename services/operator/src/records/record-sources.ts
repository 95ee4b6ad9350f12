/** Opens the views and the logs of access records. */
import {
  type AccessLogBytes,
  type AuditLog,
  type Author,
  type Change,
  createAuditLog,
  createRecordLog,
  type FoundUnreadable,
  findUnreadable,
  type LogPosition,
  type RecordKind,
  type SkipRecordParts,
  skipRecord,
  syncFromLog,
  UnreadableRecord,
} from '@playline/access-keys';
import { auditEntryCodec, type SchemaSource, TOPICS } from '@playline/contracts';
import type { LogReader, Producer } from '@playline/stream';
import { awaitSchemaId, awaitWritable, type Schemas, withStore } from '../await-store.ts';
import {
  confirm,
  EXIT,
  type ExitCode,
  type JsonOption,
  printResult,
  type Terminal,
  throwUnconfirmed,
  UsageError,
} from '../command.ts';
import type { LogOpeners, RecordOpeners } from '../store-openers.ts';
import { type RecordSources, withPair } from './record-access.ts';

/** Opens the Kafka and registry clients, and closes them if `create` fails. */
async function openTopics<L>(
  { openLog, createSchemas }: LogOpeners,
  openProducer: () => Promise<Producer>,
  create: (clients: { schemas: Schemas; producer: Producer; reader: LogReader }) => Promise<L>,
): Promise<L & { close(): Promise<void> }> {
  const schemas = await createSchemas();
  const producer = await openProducer();
  const reader = await openLog();
  const close = async () => void (await Promise.all([producer.close(), reader.close()]));
  try {
    return { ...(await create({ schemas, producer, reader })), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Opening a log throws UnreachableError when the brokers, the registry or the schema are unavailable. */
export function createRecordSources(
  { openRecordView, ...openers }: RecordOpeners,
  { topicPrefix, author }: { readonly topicPrefix: string; readonly author: Author },
): <R extends Change>(kind: RecordKind<R>) => RecordSources<R> {
  return (kind) => ({
    kind,
    author,
    openView: () => openRecordView(kind),
    openLog: () => {
      const topic = topicPrefix + kind.topic;
      return openTopics(
        openers,
        () => openers.openProducer(topic),
        async ({ schemas, producer, reader }) => {
          const schemaId = await awaitWritable({ producer, schemas }, topic, kind.codec.schema);
          const next = `the next ${kind.name} command completes or discards the change`;
          return createRecordLog({
            kind,
            schemaId,
            schemaOf: schemas.schemaOf,
            bounds: () => reader.bounds(topic),
            read: (range) => reader.read({ topic, ...range }),
            send: (record) => producer.sendForOffset({ topic, ...record }).catch(throwUnconfirmed('the change', next)),
          });
        },
      );
    },
  });
}

/** The raw records of an access topic, and the audit log. */
export interface OpenAccessLog {
  readonly log: AccessLogBytes;
  readonly audit: AuditLog;
  readonly schemaId: number;
  readonly schemaOf: SchemaSource;
  close(): Promise<void>;
}

/** @param topic name without prefix @throws UnreachableError like the logs of `createRecordSources` */
export type OpenLogOfTopic = (topic: string, schema: string) => Promise<OpenAccessLog>;

export const createOpenLogOfTopic =
  (openers: Omit<RecordOpeners, 'openRecordView'>, topicPrefix: string): OpenLogOfTopic =>
  (name, schema) => {
    const [topic, audit] = [topicPrefix + name, topicPrefix + TOPICS.audit.name];
    return openTopics(
      openers,
      () => openers.openProducer(topic, audit),
      async ({ schemas, producer, reader }) => {
        const [schemaId, auditId] = await Promise.all([
          awaitWritable({ producer, schemas }, topic, schema),
          awaitSchemaId(schemas, audit, auditEntryCodec.schema),
        ]);
        const log: AccessLogBytes = {
          bounds: () => reader.bounds(topic),
          read: (range) => reader.read({ topic, ...range, isWhole: true }),
          send: (record) => producer.sendForOffset({ topic, ...record }),
        };
        const send = (record: { key: Buffer; value: Buffer }) => producer.sendForOffset({ topic: audit, ...record });
        return { log, audit: createAuditLog({ schemaId: auditId, send }), schemaId, schemaOf: schemas.schemaOf };
      },
    );
  };

interface SkipRecordContext {
  readonly kinds: readonly RecordSources<Change>[];
  readonly openAccessLog: OpenLogOfTopic;
  readonly author: { readonly changedBy: string; readonly requestId: string };
}

export async function skipUnreadableRecord(
  { kinds, openAccessLog, author }: SkipRecordContext,
  { yes, json, ...position }: LogPosition & JsonOption & { readonly yes?: boolean | undefined },
  terminal: Terminal,
): Promise<ExitCode> {
  const sources = kinds.find(({ kind }) => kind.topic === position.topic);
  if (sources === undefined)
    throw new UsageError(`--topic: expected ${kinds.map(({ kind }) => kind.topic).join(', ')}`);
  const { topic, codec } = sources.kind;
  const found = await withStore('Redis', await sources.openView(), async (view) => {
    const { close, ...opened } = await openAccessLog(topic, codec.schema);
    const skip = async (parts: SkipRecordParts<Change>) => {
      const effect = `${describe(position, await findUnreadable(parts, position))} This cannot be undone.`;
      await confirm(effect, { yes }, terminal);
      return skipRecord(parts, position);
    };
    return skip({ view, author, ...opened }).finally(close);
  });
  const line = { ...position, id: found.key.toString(), reason: found.reason, isKept: found.kept !== null };
  printResult(terminal, { json }, line, `Record skipped. ${describeKept(found)}`);
  return applyNow(sources, terminal);
}

const describe = ({ topic, partition, offset }: LogPosition, found: FoundUnreadable<Change>) =>
  `The record at ${topic}/${partition}/${offset} cannot be read: ${found.reason}. If it is skipped, ${describeKept(found)}`;

/** The id of an unreadable record may contain any bytes. */
function describeKept({ key, kept }: FoundUnreadable<Change>): string {
  const id = JSON.stringify(key.toString());
  return kept === null
    ? `${id} does not exist.`
    : `the previous record of ${id} applies again. If the unreadable record revoked a key, revoke the key again.`;
}

/** Updates Redis immediately, instead of waiting until a running process applies the change. */
async function applyNow(sources: RecordSources<Change>, terminal: Terminal): Promise<ExitCode> {
  try {
    await withPair(sources, (pair) => syncFromLog(pair));
    return EXIT.ok;
  } catch (fault) {
    if (!(fault instanceof UnreadableRecord)) throw fault;
    terminal.progress(`keys: another record is unreadable: ${fault.message}`);
    return EXIT.failed;
  }
}
