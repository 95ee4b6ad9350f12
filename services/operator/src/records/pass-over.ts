import {
  catchUpRecords,
  type FoundUnreadable,
  findUnreadable,
  type PassOverParts,
  passOverRecord,
  type RecordSettling,
  settlingOf,
  settlingOfKeys,
  type UnreadablePlace,
  UnreadableRecord,
} from '@playline/access-keys';
import { TOPICS } from '@playline/contracts';
import { withStore } from '../await-store.ts';
import { EXIT, type ExitCode, isMeant, numberOf, type Terminal, textOf, UsageError, type Values } from '../command.ts';
import { rebuildView } from '../keys/key-access.ts';
import type { OpensAccessLog } from './access-log.ts';
import type { RebuiltSources } from './rebuild-views.ts';
import { withPair } from './record-access.ts';

export const PASS_OVER_OPTIONS = {
  topic: { type: 'string' },
  partition: { type: 'string' },
  offset: { type: 'string' },
  yes: { type: 'boolean', default: false },
} as const;

export interface PassOverContext extends RebuiltSources {
  readonly openAccessLog: OpensAccessLog;
  readonly author: { readonly changedBy: string; readonly requestId: string };
}

/** Skips one unreadable access record, after confirmation. */
export async function passOver(context: PassOverContext, values: Values, terminal: Terminal): Promise<ExitCode> {
  const place = placeOf(context, values);
  const found = await withParts<FoundUnreadable<unknown> | null>(context, place, async (parts) => {
    const looked = await findUnreadable(parts, place);
    const isSaid = await isMeant(`${toWhat(place, looked)} This cannot be undone.`, values, terminal);
    return isSaid ? passOverRecord(parts, place) : null;
  });
  if (found === null) {
    terminal.progress('nothing was done');
    return EXIT.failed;
  }
  const line = { ...place, id: found.key.toString(), reason: found.reason, isKept: found.standing !== null };
  terminal.result(values.json === true ? JSON.stringify(line) : `passed over. ${toKept(found)}`);
  return bringIn(context, place, terminal);
}

/** @throws UsageError */
function placeOf({ kinds }: PassOverContext, values: Values): UnreadablePlace {
  const topics = [TOPICS.accessKeys.name, ...kinds.map(({ kind }) => kind.topic)];
  const topic = textOf(values, 'topic') ?? '';
  if (!topics.includes(topic)) throw new UsageError(`--topic: expected ${topics.join(', ')}`);
  const whole = (name: string) => {
    if (textOf(values, name) === undefined) throw new UsageError(`--${name}: say which`);
    const value = numberOf(values, name, { min: 0, max: Number.MAX_SAFE_INTEGER, fallback: 0 });
    if (!Number.isInteger(value)) throw new UsageError(`--${name}: expected a whole number`);
    return value;
  };
  return { topic, partition: whole('partition'), offset: whole('offset') };
}

const toWhat = ({ topic, partition, offset }: UnreadablePlace, found: FoundUnreadable<unknown>) =>
  `${topic}, partition ${partition}, offset ${offset} cannot be read: ${found.reason}. Without it: ${toKept(found)}`;

/** Our ids are printable, but an unreadable record may have any bytes. */
function toKept({ key, standing }: FoundUnreadable<unknown>): string {
  const id = JSON.stringify(key.toString());
  return standing === null
    ? `nothing is known of ${id}, so it is gone.`
    : `what stood before of ${id} stands again; if the record ended something, end it again.`;
}

/** Opens what is needed to settle a record of a topic, and closes it afterwards. */
async function withParts<T>(
  { keys, kinds, author, openAccessLog }: PassOverContext,
  { topic }: UnreadablePlace,
  work: <R>(parts: PassOverParts<R>) => Promise<T>,
): Promise<T> {
  const withLog = async <R>(settling: RecordSettling<R>) => {
    const { close, ...opened } = await openAccessLog(topic, settling.codec.schema);
    return work({ ...settling, ...opened }).finally(close);
  };
  const sources = kinds.find(({ kind }) => kind.topic === topic);
  return sources === undefined
    ? withStore('Redis', await keys.openView(), (view) => withLog(settlingOfKeys({ view, author })))
    : withStore('Redis', await sources.openView(), (view) => withLog(settlingOf(sources.kind, { view, author })));
}

/** Updates Redis at once; running processes follow within seconds. */
async function bringIn(
  { keys, kinds }: PassOverContext,
  { topic }: UnreadablePlace,
  terminal: Terminal,
): Promise<ExitCode> {
  const sources = kinds.find(({ kind }) => kind.topic === topic);
  try {
    if (sources === undefined) await rebuildView(keys);
    else await withPair(sources, (pair) => catchUpRecords(pair));
    return EXIT.ok;
  } catch (fault) {
    if (!(fault instanceof UnreadableRecord)) throw fault;
    terminal.progress(`keys: there is another one: ${fault.message}`);
    return EXIT.failed;
  }
}
