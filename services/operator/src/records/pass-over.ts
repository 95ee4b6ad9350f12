/** `keys pass-over`: skips an unreadable access record. */
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
import { confirm, EXIT, type ExitCode, type JsonOption, printResult, type Terminal, UsageError } from '../command.ts';
import { type RecordSources, withPair } from './record-access.ts';
import type { OpenLogOfTopic } from './record-sources.ts';

export interface PassOverOptions extends LogPosition, JsonOption {
  readonly yes?: boolean | undefined;
}

export interface PassOverContext {
  readonly kinds: readonly RecordSources<Change>[];
  readonly openAccessLog: OpenLogOfTopic;
  readonly author: { readonly changedBy: string; readonly requestId: string };
}

export async function passOver(
  { kinds, openAccessLog, author }: PassOverContext,
  { yes, json, ...position }: PassOverOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  const sources = kinds.find(({ kind }) => kind.topic === position.topic);
  if (sources === undefined)
    throw new UsageError(`--topic: expected ${kinds.map(({ kind }) => kind.topic).join(', ')}`);
  const { topic, codec } = sources.kind;
  const found = await withStore('Redis', await sources.openView(), async (view) => {
    const { close, ...opened } = await openAccessLog(topic, codec.schema);
    const skip = async (parts: PassOverParts<Change>) => {
      const effect = `${describe(position, await findUnreadable(parts, position))} This cannot be undone.`;
      await confirm(effect, { yes }, terminal);
      return passOverRecord(parts, position);
    };
    return skip({ view, author, ...opened }).finally(close);
  });
  const line = { ...position, id: found.key.toString(), reason: found.reason, isKept: found.kept !== null };
  printResult(terminal, { json }, line, `passed over. ${describeKept(found)}`);
  return applyNow(sources, terminal);
}

const describe = ({ topic, partition, offset }: LogPosition, found: FoundUnreadable<Change>) =>
  `${topic}, partition ${partition}, offset ${offset} cannot be read: ${found.reason}. Without it: ${describeKept(found)}`;

/** An unreadable record may have any bytes as its id. */
function describeKept({ key, kept }: FoundUnreadable<Change>): string {
  const id = JSON.stringify(key.toString());
  return kept === null
    ? `${id} does not exist.`
    : `the record before it of ${id} applies again; if the unreadable record ended something, end it again.`;
}

/** Updates Redis immediately; running processes follow within seconds. */
async function applyNow(sources: RecordSources<Change>, terminal: Terminal): Promise<ExitCode> {
  try {
    await withPair(sources, (pair) => syncFromLog(pair));
    return EXIT.ok;
  } catch (fault) {
    if (!(fault instanceof UnreadableRecord)) throw fault;
    terminal.progress(`keys: there is another unreadable record: ${fault.message}`);
    return EXIT.failed;
  }
}
