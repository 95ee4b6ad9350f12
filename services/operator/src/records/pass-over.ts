import {
  type Change,
  type FoundUnreadable,
  findUnreadable,
  type LogPosition,
  type PassOverParts,
  passOverRecord,
  syncFromLog,
  UnreadableRecord,
} from '@playline/access-keys';
import { withStore } from '../await-store.ts';
import { EXIT, type ExitCode, isConfirmed, type Terminal, UsageError } from '../command.ts';
import type { OpenLogOfTopic } from './access-log.ts';
import { type RecordSources, withPair } from './record-access.ts';

/** Where the record is, and what may be confirmed in advance. */
export interface PassOverOptions extends LogPosition {
  readonly yes?: boolean | undefined;
  readonly json?: boolean | undefined;
}

export interface PassOverContext {
  /** All kinds of records. */
  readonly kinds: readonly RecordSources<Change>[];
  readonly openAccessLog: OpenLogOfTopic;
  readonly author: { readonly changedBy: string; readonly requestId: string };
}

/** Skips one unreadable access record, after confirmation. */
export async function passOver(
  context: PassOverContext,
  { yes, json = false, ...place }: PassOverOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  const sources = sourcesOf(context, place);
  const found = await withParts(context, sources, async (parts) => {
    const unreadable = await findUnreadable(parts, place);
    const effect = `${toWhat(place, unreadable)} This cannot be undone.`;
    return (await isConfirmed(effect, { yes }, terminal)) ? passOverRecord(parts, place) : null;
  });
  if (found === null) {
    terminal.progress('nothing was changed');
    return EXIT.failed;
  }
  const line = { ...place, id: found.key.toString(), reason: found.reason, isKept: found.kept !== null };
  terminal.result(json ? JSON.stringify(line) : `passed over. ${toKept(found)}`);
  return applyNow(sources, terminal);
}

/** @throws UsageError for a topic without access records */
function sourcesOf({ kinds }: PassOverContext, { topic }: LogPosition): RecordSources<Change> {
  const sources = kinds.find(({ kind }) => kind.topic === topic);
  if (sources !== undefined) return sources;
  throw new UsageError(`--topic: expected ${kinds.map(({ kind }) => kind.topic).join(', ')}`);
}

const toWhat = ({ topic, partition, offset }: LogPosition, found: FoundUnreadable<Change>) =>
  `${topic}, partition ${partition}, offset ${offset} cannot be read: ${found.reason}. Without it: ${toKept(found)}`;

/** Our ids are printable, but an unreadable record may have any bytes. */
function toKept({ key, kept }: FoundUnreadable<Change>): string {
  const id = JSON.stringify(key.toString());
  return kept === null
    ? `nothing is known of ${id}, so it is gone.`
    : `the record before it of ${id} applies again; if the unreadable record ended something, end it again.`;
}

/** Opens what is needed to skip a record of a topic, and closes it afterwards. */
async function withParts<T>(
  { author, openAccessLog }: PassOverContext,
  { kind, openView }: RecordSources<Change>,
  work: (parts: PassOverParts<Change>) => Promise<T>,
): Promise<T> {
  return withStore('Redis', await openView(), async (view) => {
    const { close, ...opened } = await openAccessLog(kind.topic, kind.codec.schema);
    return work({ view, author, ...opened }).finally(close);
  });
}

/** Updates Redis immediately; running processes follow within seconds. */
async function applyNow(sources: RecordSources<Change>, terminal: Terminal): Promise<ExitCode> {
  try {
    await withPair(sources, (pair) => syncFromLog(pair));
    return EXIT.ok;
  } catch (fault) {
    if (!(fault instanceof UnreadableRecord)) throw fault;
    terminal.progress(`keys: there is another one: ${fault.message}`);
    return EXIT.failed;
  }
}
