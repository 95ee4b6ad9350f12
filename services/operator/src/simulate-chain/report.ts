import { isClean, toVerdictLines } from '../simulate/differences.ts';
import { round } from '../simulate/tally.ts';
import type { ChainSimulationResult } from './simulation.ts';

/** The result as one object for `--json`. */
export function toJson(result: ChainSimulationResult): Record<string, unknown> {
  const { run, chain, sent, latency } = result;
  return {
    ok: isClean(result),
    run: run.tag,
    seed: run.seed,
    chain,
    sent: { ...sent, seconds: round(result.sentMs / 1000) },
    unknownVersions: result.unknown,
    served: { activities: result.served, placesBefore: result.before, strangers: result.strangers },
    acknowledgedToServedMs: { p50: round(latency.quantileMs(0.5)), p99: round(latency.quantileMs(0.99)) },
    readings: result.readings,
    tokens: result.tokens,
    calls: { ...result.calls },
    settleSeconds: round(result.settledMs / 1000),
    judgeSeconds: round(result.judgedMs / 1000),
    differences: result.differences,
  };
}

const CLEAN = 'All acknowledged activities are served once, in their last version, in order, and under every filter.';

/** The result for people, one fact per line. */
export function toLines(result: ChainSimulationResult): string[] {
  const { run, chain, sent, calls, latency } = result;
  const seconds = result.sentMs / 1000;
  const rate = ((sent.activities + sent.laterVersions) / Math.max(seconds, 0.001)).toFixed(0);
  const lines = [
    `run       ${run.tag}, seed ${run.seed}, chain ${chain}`,
    `sent      ${sent.activities} activities and ${sent.laterVersions} later versions in ${sent.portions} imports, ${(sent.bytes / 2 ** 20).toFixed(1)} MiB in ${seconds.toFixed(1)} s (${rate}/s)`,
    `again     ${sent.retries} imports tried again`,
    `refused   ${sent.refused} broken lines, ${sent.replaced} more were replaced by a later line`,
    `unknown   ${result.unknown} versions never acknowledged`,
    `served    ${result.served} activities, the last ${(result.settledMs / 1000).toFixed(1)} s after the last import`,
    `others    ${result.before} places before the run, ${result.strangers} activities of others since`,
    `latency   from acknowledged to served: p50 ${latency.quantileMs(0.5).toFixed(0)} ms, p99 ${latency.quantileMs(0.99).toFixed(0)} ms`,
    `readings  ${result.readings.map(({ name, activities }) => `${name} ${activities}`).join(', ')}`,
    `tokens    ${result.tokens}`,
    `calls     ${calls.made}, ${calls.waited} of them waited for, in ${((result.sentMs + result.settledMs + result.judgedMs) / 1000).toFixed(0)} s`,
  ];
  return [...lines, ...toVerdictLines(result.differences, CLEAN)];
}
