import {
  type Change,
  type FoundUnreadable,
  findUnreadable,
  type PassOverParts,
  passOverRecord,
  syncFromLog,
  type UnreadablePlace,
  UnreadableRecord,
} from '@playline/access-keys';
import { withStore } from '../await-store.ts';
import { EXIT, type ExitCode, isMeant, numberOf, type Terminal, textOf, UsageError, type Values } from '../command.ts';
import type { OpensAccessLog } from './access-log.ts';
import { type RecordSources, withPair } from './record-access.ts';

export const PASS_OVER_OPTIONS = {
  topic: { type: 'string' },
  partition: { type: 'string' },
  offset: { type: 'string' },
  yes: { type: 'boolean', default: false },
} as const;

export interface PassOverContext {
  /** All kinds of records. */
  readonly kinds: readonly RecordSources<Change>[];
  readonly openAccessLog: OpensAccessLog;
  readonly author: { readonly changedBy: string; readonly requestId: string };
}

/** Skips one unreadable access record, after confirmation. */
export async function passOver(context: PassOverContext, values: Values, terminal: Terminal): Promise<ExitCode> {
  const { place, sources } = placeOf(context, values);
  const found = await withParts(context, sources, async (parts) => {
    const unreadable = await findUnreadable(parts, place);
    const isConfirmed = await isMeant(`${toWhat(place, unreadable)} This cannot be undone.`, values, terminal);
    return isConfirmed ? passOverRecord(parts, place) : null;
  });
  if (found === null) {
    terminal.progress('nothing was done');
    return EXIT.failed;
  }
  const line = { ...place, id: found.key.toString(), reason: found.reason, isKept: found.kept !== null };
  terminal.result(values.json === true ? JSON.stringify(line) : `passed over. ${toKept(found)}`);
  return applyNow(sources, terminal);
}

/** @throws UsageError */
function placeOf({ kinds }: PassOverContext, values: Values) {
  const topics = kinds.map(({ kind }) => kind.topic);
  const topic = textOf(values, 'topic') ?? '';
  const sources = kinds.find(({ kind }) => kind.topic === topic);
  if (sources === undefined) throw new UsageError(`--topic: expected ${topics.join(', ')}`);
  const whole = (name: string) => {
    if (textOf(values, name) === undefined) throw new UsageError(`--${name}: say which`);
    const value = numberOf(values, name, { min: 0, max: Number.MAX_SAFE_INTEGER, fallback: 0 });
    if (!Number.isInteger(value)) throw new UsageError(`--${name}: expected a whole number`);
    return value;
  };
  return { place: { topic, partition: whole('partition'), offset: whole('offset') }, sources };
}

const toWhat = ({ topic, partition, offset }: UnreadablePlace, found: FoundUnreadable<Change>) =>
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
