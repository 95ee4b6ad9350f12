import type { AtomicPublisher, LogReader } from '@playline/stream';
import { type Fate, type Letter, readFates, readLetters, toMark, toPlaceText, toReplay } from './letters.ts';

export interface SettleOptions {
  readonly log: LogReader;
  /** Opened before anything is read: from then on no other command can settle a letter. */
  readonly publisher: AtomicPublisher;
  /** Dead-letter topics. */
  readonly topics: readonly string[];
  readonly isSelected: (letter: Letter) => boolean;
  readonly fate: Fate;
  /** Maximum number of letters to settle. */
  readonly lettersMax: number;
  readonly onProgress: (settled: number) => void;
  /** Aborted to stop after the current batch. */
  readonly stop: AbortSignal;
}

/** What was done with the selected letters. */
export interface Settled {
  settled: number;
  /** Letters that were settled before, and are not changed. */
  before: number;
}

/** One transaction takes one round trip; larger ones only delay consumers. */
const BATCH_LETTERS_MAX = 100;
const BATCH_BYTES_MAX = 512 * 1024;

/**
 * Settles the selected open letters in the order of the log. A dropped letter gets a mark; a replayed letter gets a
 * mark and goes to its topic in one transaction, so a letter is replayed if and only if it is marked.
 *
 * Exactly once: opening the publisher before reading the marks fences any earlier command, whose open transaction is
 * then committed or aborted, and cannot arrive later.
 * @throws Error when letters could not be settled; earlier ones are
 */
export async function settleLetters(options: SettleOptions): Promise<Settled> {
  const result: Settled = { settled: 0, before: 0 };
  for (const topic of options.topics) await settleTopic(topic, result, options);
  return result;
}

async function settleTopic(topic: string, result: Settled, options: SettleOptions): Promise<void> {
  const { log, isSelected, lettersMax, stop } = options;
  const fates = await readFates(log, topic);
  let batch: Letter[] = [];
  let bytes = 0;
  const flush = async () => {
    await publish(batch, options);
    result.settled += batch.length;
    if (batch.length > 0) options.onProgress(result.settled);
    [batch, bytes] = [[], 0];
  };
  for await (const letter of readLetters(log, topic)) {
    if (stop.aborted || result.settled + batch.length >= lettersMax) break;
    if (!isSelected(letter)) continue;
    if (fates.has(toPlaceText(letter.place))) {
      result.before++;
      continue;
    }
    batch.push(letter);
    bytes += (letter.record.key?.length ?? 0) + (letter.record.value?.length ?? 0);
    if (batch.length >= BATCH_LETTERS_MAX || bytes >= BATCH_BYTES_MAX) await flush();
  }
  await flush();
}

async function publish(letters: readonly Letter[], { publisher, fate }: SettleOptions): Promise<void> {
  if (letters.length === 0) return;
  const replays = fate.kind === 'replayed' ? letters.map(toReplay) : [];
  await publisher.publish([...replays, ...letters.map((letter) => toMark(letter, fate))]);
}
