import { isBlank } from '@playline/contracts';
import { explain } from './explain.ts';
import { FAULT, type Fault } from './faults.ts';
import { QUOTE } from './json.ts';
import { FIELD, NO_OBJECT, ROW_SHIFT, type ScanState, SOUND, textOf, UUID_BYTES } from './ranges.ts';

/** A rejected message, by its index. */
export interface Rejected {
  readonly message: number;
  readonly faults: readonly Fault[];
}

/** One entry of the answer's `rejections`: all messages of one id. */
export interface RejectionEntry {
  /** The id in the client's first spelling. */
  readonly messageId: string;
  readonly faults: readonly Fault[];
}

export interface Judgement {
  readonly rejected: readonly Rejected[];
  readonly entries: readonly RejectionEntry[];
}

const ALL_ACCEPTED: Judgement = { rejected: [], entries: [] };

/**
 * Judges a scanned batch: each message by itself, then twins, which are messages with the same id. Only doubtful
 * messages are examined again (`explain`). Marks the messages to encode in `batch.accepted`. The result equals that of
 * `judgeBatch` of the contract.
 */
export function judgeScanned(state: ScanState): Judgement {
  const { batch, verdicts } = state;
  batch.accepted.fill(1, 0, batch.count);
  const faults: (readonly Fault[] | undefined)[] = [];
  for (let message = 0; message < batch.count; message++) {
    if (verdicts[message] === SOUND) continue;
    const found = explain(state, message);
    if (found.length > 0) faults[message] = found;
  }
  const spellings = new Spellings(state);
  const rejectTwin = (message: number) => {
    const before = faults[message] ?? [];
    if (before[0] !== FAULT.duplicateId) faults[message] = [FAULT.duplicateId, ...before];
  };
  const onTwins = (message: number, first: number) => {
    rejectTwin(first);
    rejectTwin(message);
  };
  findTwins(state, onTwins);
  if (faults.length === 0) return ALL_ACCEPTED;
  spellings.findTwins(onTwins);
  return toJudgement(state, faults, spellings);
}

function toJudgement(
  { batch }: ScanState,
  faults: readonly (readonly Fault[] | undefined)[],
  spellings: Spellings,
): Judgement {
  const rejected: Rejected[] = [];
  const entries = new Map<string, Entry>();
  for (const [message, found] of faults.entries()) {
    if (found === undefined) continue;
    batch.accepted[message] = 0;
    rejected.push({ message, faults: found });
    const { echo, name } = spellings.of(message);
    const entry = entries.get(name);
    if (entry === undefined) entries.set(name, new Entry(echo, found));
    else entry.add(found);
  }
  return { rejected, entries: [...entries.values()] };
}

class Entry implements RejectionEntry {
  readonly messageId: string;
  faults: readonly Fault[];
  #places: Set<number> | null = null;

  constructor(messageId: string, faults: readonly Fault[]) {
    this.messageId = messageId;
    this.faults = faults;
  }

  /** Adds the faults of another message of the same id; each field and code only once. */
  add(faults: readonly Fault[]): void {
    this.#places ??= new Set(this.faults.map(({ place }) => place));
    const places = this.#places;
    const more = faults.filter(({ place }) => !places.has(place));
    if (more.length === 0) return;
    for (const { place } of more) places.add(place);
    this.faults = [...this.faults, ...more];
  }
}

/** How the answer names a message, and how messages with the same id are recognised. */
interface Spelling {
  /** The name that is echoed to the client. */
  readonly echo: string;
  /** Messages of the same name share one entry. */
  readonly name: string;
  readonly isComparable: boolean;
}

const NO_ID: Spelling = { echo: '', name: '', isComparable: false };

/** Contract, "messageId", "No object", "Several without an id" and "Twins". */
class Spellings {
  readonly #state: ScanState;
  readonly #known: (Spelling | undefined)[] = [];

  constructor(state: ScanState) {
    this.#state = state;
  }

  of(message: number): Spelling {
    this.#known[message] ??= this.#read(message);
    return this.#known[message];
  }

  #read(message: number): Spelling {
    const { bytes, batch, verdicts } = this.#state;
    const slot = (message << ROW_SHIFT) + FIELD.messageId;
    const start = batch.starts[slot]!;
    if (verdicts[message] === NO_OBJECT || start === 0) return NO_ID;
    const isText = bytes[start - 1] === QUOTE;
    if (!isText && batch.ends[slot] === start) return NO_ID;
    const echo = textOf(batch, message, FIELD.messageId);
    return { echo, name: echo.toLowerCase(), isComparable: isText && !isBlank(echo) };
  }

  /** Finds messages that share an id which is not a UUID. UUIDs have been compared already. */
  findTwins(onTwins: (message: number, first: number) => void): void {
    const { batch, hasUuid, verdicts } = this.#state;
    const firsts = new Map<string, number>();
    for (let message = 0; message < batch.count; message++) {
      if (verdicts[message] === SOUND || hasUuid[message] === 1) continue;
      const { name, isComparable } = this.of(message);
      if (!isComparable) continue;
      const first = firsts.get(name);
      if (first === undefined) firsts.set(name, message);
      else onTwins(message, first);
    }
  }
}

/** Slots of the hash table below: more than twice the messages of a batch, and a power of two. */
const PLACES = 256;
const places = new Int16Array(PLACES);

function isSameId(ids: Uint8Array, message: number, other: number): boolean {
  const start = message * UUID_BYTES;
  const otherStart = other * UUID_BYTES;
  for (let i = 0; i < UUID_BYTES; i++) if (ids[start + i] !== ids[otherStart + i]) return false;
  return true;
}

/**
 * Finds messages with the same UUID. The ids are bytes, so upper and lower case do not matter.
 * @param onTwins called with both messages, once for each after the first
 */
export function findTwins(
  { batch, hasUuid }: Pick<ScanState, 'batch' | 'hasUuid'>,
  onTwins: (message: number, first: number) => void,
): void {
  if (batch.count < 2) return;
  const ids = batch.messageIds;
  places.fill(-1);
  for (let message = 0; message < batch.count; message++) {
    if (hasUuid[message] === 0) continue;
    const id = message * UUID_BYTES;
    // First, middle and last bytes, because ids made from a counter differ at one of the ends.
    let place = (ids[id]! ^ (ids[id + 7]! * 5) ^ (ids[id + 15]! * 3)) & (PLACES - 1);
    let other = places[place]!;
    while (other >= 0 && !isSameId(ids, message, other)) {
      place = (place + 1) & (PLACES - 1);
      other = places[place]!;
    }
    if (other >= 0) onTwins(message, other);
    else places[place] = message;
  }
}
