import type { LogReader } from '@playline/stream';
import { type Letter, readFates, readLetters, toPlaceText } from './letters.ts';

/** Letters of one topic, step and reason. */
export interface LetterGroup {
  readonly topic: string;
  readonly step: string;
  readonly reason: string;
  open: number;
  replayed: number;
  dropped: number;
  firstAtMs: number;
  lastAtMs: number;
  /** The first open letter, for `show`; null when none is open. */
  example: string | null;
}

/** Reasons often contain the input; a group shows only the beginning. */
const REASON_CHARACTERS_MAX = 80;
/** Further reasons are counted together: a list of thousands is useless and would not fit into memory. */
const GROUPS_MAX = 200;
const OTHER_REASONS = '(other reasons)';

/** Counts the letters of dead-letter topics by topic, step and reason; groups with most open ones come first. */
export async function groupLetters(
  log: LogReader,
  topics: readonly string[],
  isSelected: (letter: Letter) => boolean,
): Promise<LetterGroup[]> {
  const groups = new Map<string, LetterGroup>();
  for (const topic of topics) {
    const fates = await readFates(log, topic);
    for await (const letter of readLetters(log, topic)) {
      if (!isSelected(letter)) continue;
      const group = groupOf(groups, letter);
      const place = toPlaceText(letter.place);
      const fate = fates.get(place)?.kind ?? 'open';
      group[fate]++;
      group.firstAtMs = Math.min(group.firstAtMs, letter.deadAtMs);
      group.lastAtMs = Math.max(group.lastAtMs, letter.deadAtMs);
      if (fate === 'open') group.example ??= place;
    }
  }
  return [...groups.values()].sort((a, b) => b.open - a.open || b.lastAtMs - a.lastAtMs);
}

function groupOf(groups: Map<string, LetterGroup>, { original, step, reason, deadAtMs }: Letter): LetterGroup {
  const make = (shown: string) => {
    const key = JSON.stringify([original.topic, step, shown]);
    const known = groups.get(key);
    if (known !== undefined) return known;
    if (groups.size >= GROUPS_MAX && shown !== OTHER_REASONS) return null;
    const counts = { open: 0, replayed: 0, dropped: 0, firstAtMs: deadAtMs, lastAtMs: deadAtMs, example: null };
    const group: LetterGroup = { topic: original.topic, step, reason: shown, ...counts };
    groups.set(key, group);
    return group;
  };
  return make(reason.slice(0, REASON_CHARACTERS_MAX)) ?? make(OTHER_REASONS)!;
}

const toTime = (ms: number) => new Date(ms).toISOString();

/** One line per group. */
export function toGroupLine(group: LetterGroup): string {
  const counts = `${group.open} open, ${group.replayed} replayed, ${group.dropped} dropped`;
  const times = `${toTime(group.firstAtMs)} to ${toTime(group.lastAtMs)}`;
  const example = group.example === null ? '' : `  show ${group.example}`;
  return `${group.topic}  ${group.step}  ${counts}  ${times}  ${JSON.stringify(group.reason)}${example}`;
}
