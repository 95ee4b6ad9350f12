import { isClean, toVerdictLines } from './differences.ts';
import type { SimulationResult } from './simulation.ts';
import { round } from './tally.ts';

/** The result as one object for `--json`. */
export function toJson(result: SimulationResult): Record<string, unknown> {
  const { run, tally, reconciliation } = result;
  return {
    ok: isClean(result),
    run: run.tag,
    seed: run.seed,
    sent: {
      batches: tally.batches,
      messages: tally.messages,
      bytes: tally.bytes,
      seconds: round(result.sentMs / 1000),
    },
    resentBatches: tally.resentBatches,
    lostAnswers: tally.lostAnswers,
    repeatedTries: Object.fromEntries(tally.retries),
    accepted: tally.accepted,
    rejected: tally.rejected,
    rejectedByCode: Object.fromEntries(tally.rejectedByCode),
    unknown: { batches: tally.unknownBatches, messages: result.unknownMessages, stored: reconciliation.unknownStored },
    probes: tally.probes,
    ways: result.ways,
    rows: { raw: reconciliation.raw, exact: reconciliation.exact },
    persons: { ...reconciliation.persons, householdsLeftOut: result.doubtfulHouseholds },
    acknowledgedMs: { p50: round(tally.latency.quantileMs(0.5)), p99: round(tally.latency.quantileMs(0.99)) },
    settleSeconds: round(result.settledMs / 1000),
    differences: result.differences,
  };
}

const CLEAN = 'All accepted messages are stored once, every rejection and every person is as expected.';

/** The result for people, one fact per line. */
export function toLines(result: SimulationResult): string[] {
  const { tally, reconciliation: rows } = result;
  const seconds = result.sentMs / 1000;
  const codes = [...tally.rejectedByCode].map(([code, times]) => `${code} ${times}`).join(', ');
  const lines = [
    `run       ${result.run.tag}, seed ${result.run.seed}`,
    `sent      ${tally.messages} messages in ${tally.batches} batches, ${(tally.bytes / 2 ** 20).toFixed(1)} MiB in ${seconds.toFixed(1)} s (${(tally.messages / seconds).toFixed(0)}/s)`,
    `again     ${tally.resentBatches} batches resent, ${tally.lostAnswers} answers lost, tries repeated: ${describe(tally.retries)}`,
    `accepted  ${tally.accepted}`,
    `rejected  ${tally.rejected} (${codes})`,
    `unknown   ${result.unknownMessages} messages never acknowledged, ${rows.unknownStored} of them stored`,
    `probes    ${tally.probes} requests that are wrong as a whole`,
    `stored    ${rows.exact} rows in the exact view, ${rows.raw} raw, ${(result.settledMs / 1000).toFixed(1)} s after the last answer`,
    `persons   ${rows.persons.stored} stored, ${rows.persons.model} in the model`,
    `answered  p50 ${tally.latency.quantileMs(0.5).toFixed(0)} ms, p99 ${tally.latency.quantileMs(0.99).toFixed(0)} ms`,
  ];
  if (result.doubtfulHouseholds > 0)
    lines.push(`left out  persons of ${result.doubtfulHouseholds} households with a batch never acknowledged`);
  return [...lines, ...toVerdictLines(result.differences, CLEAN)];
}

function describe(counts: ReadonlyMap<string, number>): string {
  return counts.size === 0 ? 'none' : [...counts].map(([reason, times]) => `${times} × ${reason}`).join(', ');
}
