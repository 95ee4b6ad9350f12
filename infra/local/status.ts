import { waitAtMost } from '@playline/stores';
import { type Condition, readConditions } from './condition.ts';
import { lastErrorOf } from './logs.ts';
import { logFileOf, type Places } from './places.ts';
import { askLag, type Found, probe } from './probes.ts';
import { ageOf } from './process-mark.ts';
import { sentenceOf } from './readiness-watch.ts';
import { silenceRemedy } from './report.ts';
import { readStackFile, type StackFile } from './stack-file.ts';
import { supervisedSinceAt } from './supervisor.ts';

/** Longer than each single request of a probe, which may send several. */
const PROBE_MAX_MS = 10_000;

/** One process: what its supervisor knows, and its current answer. */
export interface ProcessStatus {
  readonly name: string;
  readonly state: 'serves' | 'degraded' | 'starting' | 'does not serve' | 'down';
  readonly pid: number | null;
  readonly ageSeconds: number | null;
  readonly restarts: number;
  /** Why it does not serve, or what it cannot do; null when all is well. */
  readonly reason: string | null;
  /** Advice for one that has not served for a minute; null for all others. */
  readonly mend: string | null;
  /** Number of records that it has not read yet; null when it reads no log, or when Kafka does not answer. */
  readonly lag: number | null;
  readonly lastError: { readonly at: string; readonly what: string } | null;
}

async function askWithin(name: string, file: StackFile): Promise<Found> {
  try {
    return await waitAtMost(PROBE_MAX_MS, probe(name, file), () => {
      throw new Error(`it has not answered for ${PROBE_MAX_MS / 1000} s`);
    });
  } catch (error) {
    return { fault: sentenceOf(error), degraded: null };
  }
}

function stateOf({ pid, state }: Condition, { fault, degraded }: Found): ProcessStatus['state'] {
  if (pid === null) return 'down';
  if (fault !== null) return state === 'starting' ? 'starting' : 'does not serve';
  return degraded === null ? 'serves' : 'degraded';
}

function reasonOf({ pid, reason, restarts }: Condition, { fault, degraded }: Found): string | null {
  if (pid === null) return `ended (${reason ?? 'nobody knows why'}); it is started again, ${restarts} times so far`;
  return fault ?? degraded;
}

/**
 * Asks every process of this checkout's stack now whether it serves.
 * @param options.readsLag false leaves `lag` null: a verdict does not need it, and it takes a dozen requests
 * @returns null when no supervisor runs
 */
export async function readStatus(places: Places, { readsLag = true } = {}): Promise<ProcessStatus[] | null> {
  const conditions = readConditions(places);
  if (conditions === null) return null;
  const file = readStackFile(places);
  const startedAt = supervisedSinceAt(places);
  const lags = file === null || !readsLag ? new Map<string, number>() : await askLagWithin(file);
  const asked = conditions.map(async (condition): Promise<ProcessStatus> => {
    const { name, pid, restarts } = condition;
    // Before everything is up there are no addresses, so the supervisor's own findings count.
    const isAsked = file !== null && pid !== null;
    const found = isAsked ? await askWithin(name, file) : { fault: condition.reason, degraded: null };
    return {
      name,
      pid,
      restarts,
      state: stateOf(condition, found),
      ageSeconds: pid === null ? null : ageOf(pid),
      reason: reasonOf(condition, found),
      mend: found.fault !== null && condition.isSilent && pid !== null ? silenceRemedy(name, pid) : null,
      lag: lags.get(name) ?? null,
      lastError: latest(condition.lastError, lastErrorOf(logFileOf(places, name), startedAt)),
    };
  });
  return Promise.all(asked);
}

async function askLagWithin(file: StackFile): Promise<Map<string, number>> {
  const none = new Map<string, number>();
  const asked = askLag(file).catch(() => none);
  return waitAtMost(PROBE_MAX_MS, asked, () => none);
}

type Told = ProcessStatus['lastError'];

/** Instants in ISO 8601 sort as texts. */
function latest(one: Told, other: Told): Told {
  if (one === null || other === null) return one ?? other;
  return one.at >= other.at ? one : other;
}

/** Text that `up`, `doctor` and `status` share. */
export interface Verdict {
  readonly isWell: boolean;
  readonly sentence: string;
  /** Added to the sentence when the table of `status` is not above it; '' when nothing can be asked. */
  readonly hint: string;
}

/**
 * @param orphans names of processes that run although their supervisor is dead. They count only when there are no
 * statuses
 */
export function judge(statuses: readonly ProcessStatus[] | null, orphans: readonly string[] = []): Verdict {
  const [isWell, hint] = [false, ''];
  if (statuses === null && orphans.length > 0) {
    const names = orphans.join(', ');
    const sentence = `the supervisor is dead; ${names} still run without it; \`npm run up\` ends them and starts anew`;
    return { isWell, sentence, hint };
  }
  if (statuses === null) {
    const sentence = 'no supervisor of a stack runs here; `npm run up` starts it, and ends what a killed one left';
    return { isWell, sentence, hint };
  }
  if (statuses.length === 0) return { isWell, sentence: 'the stack is just starting', hint };
  const ill = statuses.filter(({ state }) => state !== 'serves');
  if (ill.length === 0) return { isWell: true, sentence: `all ${statuses.length} processes serve`, hint };
  const names = ill.map(({ name, state }) => `${name} ${WORDS[state]}`).join(', ');
  const sentence = `${ill.length} of ${statuses.length} processes: ${names}`;
  return { isWell, sentence, hint: ' (why: `npm run status`)' };
}

const WORDS: Record<ProcessStatus['state'], string> = {
  serves: 'serves',
  degraded: 'cannot do all',
  starting: 'is starting',
  'does not serve': 'does not serve',
  down: 'is down',
};

function toAge(seconds: number | null): string {
  if (seconds === null) return '-';
  if (seconds < 120) return `${Math.floor(seconds)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} days`;
}

/** A table for people: a line for each process, and below it why it does not serve and its last error. */
export function toLines(statuses: readonly ProcessStatus[]): string[] {
  const head = ['process', 'state', 'age', 'restarts', 'lag', 'pid'];
  const rows = statuses.map(({ name, state, ageSeconds, restarts, lag, pid }) => [
    ...[name, state, toAge(ageSeconds), String(restarts), String(lag ?? '-'), String(pid ?? '-')],
  ]);
  const widths = head.map((word, at) =>
    rows.map((cells) => cells[at]!.length).reduce((most, each) => Math.max(most, each), word.length),
  );
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, at) => cell.padEnd(widths[at]!))
      .join('  ')
      .trimEnd();
  return [
    line(head),
    ...statuses.flatMap(({ reason, mend, lastError }, at) => [
      line(rows[at]!),
      ...(reason === null ? [] : [`    why: ${reason}`]),
      ...(mend === null ? [] : [`    do: ${mend}`]),
      ...(lastError === null || lastError.what === reason
        ? []
        : [`    last error, ${lastError.at}: ${lastError.what}`]),
    ]),
  ];
}
