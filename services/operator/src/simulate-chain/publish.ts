import { setTimeout as delay } from 'node:timers/promises';
import type { ActivityRow } from '@playline/chain';
import type { ActivityRecord } from '@playline/contracts';
import type { Imported } from '../import/import-lines.ts';
import type { ImportWay } from '../import/import-way.ts';
import type { ChainDifferences } from './kinds.ts';
import type { Ledger } from './ledger.ts';
import { toLines } from './lines.ts';
import type { TrafficLine } from './traffic.ts';

/** What was sent so far. */
export interface Sent {
  portions: number;
  activities: number;
  laterVersions: number;
  /** Lines that a later line of the same import replaced. */
  replaced: number;
  refused: number;
  bytes: number;
  /** Imports that had to be repeated. */
  retries: number;
}

export interface PublishOptions {
  readonly way: Pick<ImportWay<ActivityRecord, ActivityRow>, 'import'>;
  readonly ledger: Ledger;
  readonly differences: ChainDifferences;
  readonly sent: Sent;
  /** How long to repeat an import that the brokers do not confirm. */
  readonly patienceMs: number;
  readonly onProgress: (line: string) => void;
}

const RETRY_MS = 1_000;
/** Empty: nobody else uses these ids, and a later version always differs. */
export const NO_TAIL: ReadonlyMap<string, never[]> = new Map();

/** Creates the function that imports lines and notes the results. @returns whether the brokers have confirmed them */
export function createPublish(options: PublishOptions): (lines: readonly TrafficLine[]) => Promise<boolean> {
  const { ledger, sent } = options;
  return async (lines) => {
    const last = new Map(
      lines.flatMap((line) => (line.activity === null ? [] : [[line.sequence, line.activity] as const])),
    );
    const versions = [...last].map(([sequence, activity]) => ({
      sequence,
      isNew: ledger.find(sequence) === null,
      version: ledger.publish(sequence, activity),
    }));
    const imported = await importPatiently(lines, {
      ...options,
      onRetry: () => {
        for (const { sequence } of versions) ledger.repeat(sequence);
      },
    });
    if (imported === null) return false;
    const now = performance.now();
    for (const { sequence, version } of versions) ledger.acknowledge(sequence, version, now);
    const created = versions.filter(({ isNew }) => isNew).length;
    sent.portions++;
    sent.activities += created;
    sent.laterVersions += versions.length - created;
    sent.replaced += imported.result.superseded;
    sent.refused += imported.result.refused;
    sent.bytes += imported.bytes;
    judgeImport({ lines, versions: versions.length, ...imported }, options.differences);
    return true;
  };
}

interface Outcome {
  readonly result: Imported;
  readonly refusals: ReadonlyMap<number, readonly string[]>;
  readonly bytes: number;
}

async function importPatiently(
  lines: readonly TrafficLine[],
  { way, ledger, sent, patienceMs, onProgress, onRetry }: PublishOptions & { onRetry: () => void },
): Promise<Outcome | null> {
  const { bytes, read } = toLines(lines.map(({ text }) => text));
  const endAt = performance.now() + patienceMs;
  for (;;) {
    const refusals = new Map<number, readonly string[]>();
    try {
      const result = await way.import({
        chain: null,
        tail: NO_TAIL,
        onProgress: () => {},
        lines: read,
        onRefused: (number, faults) => void refusals.set(number, faults),
        // Never aborted: sent lines are judged, so an import is always completed.
        stop: new AbortController().signal,
      });
      return { result, refusals, bytes };
    } catch (fault) {
      onRetry();
      const isOver = performance.now() >= endAt;
      // What was confirmed before is still reconciled.
      if (isOver && ledger.acknowledged > 0) return null;
      if (isOver) throw fault;
      sent.retries++;
      onProgress(`${fault instanceof Error ? fault.message : fault}; importing these lines again`);
      await delay(RETRY_MS);
    }
  }
}

function judgeImport(
  { lines, versions, result, refusals }: Outcome & { lines: readonly TrafficLine[]; versions: number },
  differences: ChainDifferences,
): void {
  for (const [index, line] of lines.entries()) {
    const told = refusals.get(index + 1) ?? [];
    const isAsExpected =
      told.length === line.refusal.length && line.refusal.every((start, at) => told[at]?.startsWith(start) === true);
    if (!isAsExpected)
      differences.add(
        'import',
        `expected [${line.refusal.join('; ')}], was told [${told.join('; ')}]: ${line.text.slice(0, 200)}`,
      );
  }
  const wrong = lines.filter(({ activity }) => activity === null).length;
  const counts = { published: versions, superseded: lines.length - wrong - versions, refused: wrong, standing: 0 };
  for (const [name, count] of Object.entries(counts))
    if (result[name as keyof typeof counts] !== count)
      differences.add('import', `${name}: ${result[name as keyof typeof counts]} lines instead of ${count}`);
}
