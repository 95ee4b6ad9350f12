import { setTimeout as delay } from 'node:timers/promises';
import type { ActivityRow } from '@playline/chain';
import type { ActivityRecord } from '@playline/contracts';
import type { Imported, Importer } from '../../../services/operator/src/import/importer.ts';
import { type Line, readLines } from '../../../services/operator/src/import/lines.ts';
import type { ChainDifferences, Ledger } from './replica.ts';
import type { TrafficLine } from './traffic.ts';

/** Texts as lines that the import reads from a file. */
export function toLines(texts: readonly string[]): { bytes: number; read: () => AsyncGenerator<Line> } {
  const file = Buffer.from(texts.map((text) => `${text}\n`).join(''));
  const chunks = async function* () {
    yield file;
  };
  return { bytes: file.length, read: () => readLines(chunks()) };
}

export const createSent = () => ({
  portions: 0,
  activities: 0,
  laterVersions: 0,
  replaced: 0,
  refused: 0,
  bytes: 0,
  retries: 0,
});

interface PublishOptions {
  readonly importer: Pick<Importer<ActivityRecord, ActivityRow>, 'import'>;
  readonly ledger: Ledger;
  readonly differences: ChainDifferences;
  readonly sent: ReturnType<typeof createSent>;
  readonly retryMaxMs: number;
  readonly onProgress: (line: string) => void;
}

const RETRY_MS = 1_000;
/** Empty: no one else uses these ids, and a later version always differs. */
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
    const imported = await importWithRetries(lines, {
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
    checkImport({ lines, versions: versions.length, ...imported }, options.differences);
    return true;
  };
}

interface Outcome {
  readonly result: Imported;
  readonly refusals: ReadonlyMap<number, readonly string[]>;
  readonly bytes: number;
}

async function importWithRetries(
  lines: readonly TrafficLine[],
  { importer, ledger, sent, retryMaxMs, onProgress, onRetry }: PublishOptions & { onRetry: () => void },
): Promise<Outcome | null> {
  const { bytes, read } = toLines(lines.map(({ text }) => text));
  const endAt = performance.now() + retryMaxMs;
  for (;;) {
    const refusals = new Map<number, readonly string[]>();
    try {
      const result = await importer.import({
        chain: null,
        tail: NO_TAIL,
        onProgress: () => {},
        lines: read,
        onRefused: (number, faults) => void refusals.set(number, faults),
        // Never aborted: sent lines are checked, so an import is always completed.
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

function checkImport(
  { lines, versions, result, refusals }: Outcome & { lines: readonly TrafficLine[]; versions: number },
  differences: ChainDifferences,
): void {
  for (const [index, line] of lines.entries()) {
    const reasons = refusals.get(index + 1) ?? [];
    const isAsExpected =
      reasons.length === line.refusal.length &&
      line.refusal.every((start, at) => reasons[at]?.startsWith(start) === true);
    if (!isAsExpected)
      differences.add(
        'import',
        `expected [${line.refusal.join('; ')}], got [${reasons.join('; ')}]: ${line.text.slice(0, 200)}`,
      );
  }
  const wrong = lines.filter(({ activity }) => activity === null).length;
  const counts = {
    lines: lines.length,
    published: versions,
    superseded: lines.length - wrong - versions,
    refused: wrong,
  };
  for (const [name, count] of Object.entries(counts))
    if (result[name as keyof typeof counts] !== count)
      differences.add('import', `${name}: ${result[name as keyof typeof counts]} lines instead of ${count}`);
}
