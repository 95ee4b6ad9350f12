import { isClean, toVerdictLines } from '../simulate/differences.ts';
import { round } from '../simulate/tally.ts';
import type { MintSimulationResult } from './simulation.ts';

const secondsOf = (ms: number) => (ms / 1000).toFixed(1);

/** The result as one object for `--json`. */
export function toJson(result: MintSimulationResult): Record<string, unknown> {
  const { run, chain, deeds, calls, minted } = result;
  return {
    ok: isClean(result),
    run: run.tag,
    seed: run.seed,
    chain,
    assets: { accepted: result.accepted, neverHeardOf: result.doubted, ...deeds },
    ended: { succeeded: result.succeeded, failed: result.failed },
    found: {
      tokens: result.tokens,
      attempts: result.attempts,
      activities: result.activities,
      metadata: result.metadata,
    },
    calls: {
      made: calls.calls,
      refused429: calls.refused,
      waited429Seconds: round(calls.waitedMs / 1000),
      again: Object.fromEntries(calls.again),
    },
    answeredMs: { p50: round(calls.latency.quantileMs(0.5)), p99: round(calls.latency.quantileMs(0.99)) },
    mintedSeconds: { p50: round(minted.quantileMs(0.5) / 1000), p99: round(minted.quantileMs(0.99) / 1000) },
    playSeconds: round(result.playedMs / 1000),
    judgeSeconds: round(result.judgedMs / 1000),
    differences: result.differences,
  };
}

const CLEAN = 'Each reference id has one token or one clear failure; chain, rows, interface and history agree.';

/** The result for people, one fact per line. */
export function toLines(result: MintSimulationResult): string[] {
  const { run, chain, deeds, calls, minted } = result;
  const again = [...calls.again].map(([why, times]) => `${times} × ${why}`).join(', ');
  const lines = [
    `run       ${run.tag}, seed ${run.seed}, chain ${chain}`,
    `asked     ${result.accepted} assets accepted in ${deeds.orders} orders, ${deeds.again} of them again after a failure`,
    `unknown   ${result.doubted} assets of orders that were never answered`,
    `refused   ${deeds.conflicts} orders of taken reference ids, ${deeds.probes} calls that were wrong`,
    `role      ${deeds.withoutRole} assets asked for without MINTER_ROLE, ${deeds.waitedForRole} told that they wait for it`,
    `lists     ${deeds.lists} read, ${deeds.listed} requests in them`,
    `metadata  ${deeds.refreshes} refreshes of ${deeds.refreshed} subjects, ${result.metadata} stored`,
    `calls     ${calls.calls}; ${calls.refused} answers 429, waited for ${secondsOf(calls.waitedMs)} s; made again: ${again || 'none'}`,
    `ended     ${result.succeeded} tokens, ${result.failed} failures, in ${secondsOf(result.playedMs)} s`,
    `found     ${result.tokens} tokens on the chain, ${result.attempts} attempts in the rows, ${result.activities} mints in the history`,
    `minted    from accepted to final: p50 ${secondsOf(minted.quantileMs(0.5))} s, p99 ${secondsOf(minted.quantileMs(0.99))} s`,
    `answered  p50 ${calls.latency.quantileMs(0.5).toFixed(0)} ms, p99 ${calls.latency.quantileMs(0.99).toFixed(0)} ms`,
  ];
  return [...lines, ...toVerdictLines(result.differences, CLEAN)];
}
